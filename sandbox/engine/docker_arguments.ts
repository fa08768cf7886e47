import type { BindMount, Confinement, ContainerSpec, ExecSpec, Hardening, VolumeMount } from './container_runtime.ts';
import type { EngineName } from './engine_address.ts';

/**
 * The command lines of the programs `docker` and `podman`. They never contain the value of an environment variable that may be
 * secret.
 */

/**
 * Disables detach keys: detaching would end the launch but leave the agent running, and the default keys begin with Ctrl-P,
 * which agents use.
 */
const DETACH_KEYS = '--detach-keys=ctrl-@,ctrl-_,ctrl-@,ctrl-_';

export function createArguments(spec: ContainerSpec, engine: EngineName): string[] {
  return [
    'create',
    '--pull=never',
    // Of podman's own environment, which it would copy.
    ...(engine === 'podman' && spec.enginesProxies === 'left_out' ? ['--http-proxy=false'] : []),
    ...option('--name', spec.name),
    ...Object.entries(spec.labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]),
    ...environmentArguments(spec.env, engine),
    ...spec.mounts.flatMap((mount) => ['--mount', mountArgument(mount)]),
    ...(spec.volumes ?? []).flatMap((volume) => ['--mount', volumeArgument(volume)]),
    ...option('--workdir', spec.workdir),
    ...option('--user', spec.user),
    ...option('--network', networkOf(spec)),
    ...option('--entrypoint', spec.entrypoint),
    ...(spec.stdin ? ['--interactive'] : []),
    ...(spec.tty ? ['--tty'] : []),
    ...(spec.hardening === null ? [] : hardeningArguments(hardeningOf(spec.hardening, spec.user, engine))),
    ...(spec.confinement === undefined ? [] : confinementArguments(spec.confinement, engine)),
    ...(spec.removedAtEnd === true ? ['--rm'] : []),
    ...(spec.keepsNoLog === true ? ['--log-driver', 'none'] : []),
    '--',
    spec.image,
    ...spec.command,
  ];
}

export function probeArguments(name: string, image: string, script: string, hardening: Hardening): string[] {
  return [
    'run',
    '--rm',
    '--pull=never',
    '--name',
    name,
    '--network',
    'none',
    '--user',
    '0',
    '--entrypoint',
    '/bin/sh',
    ...hardeningArguments(hardening),
    '--',
    image,
    '-c',
    script,
  ];
}

export function execArguments(id: string, spec: ExecSpec, engine: EngineName): string[] {
  return [
    'exec',
    ...environmentArguments(spec.env, engine),
    ...option('--user', spec.user),
    ...option('--workdir', spec.workdir),
    ...(spec.stdin ? ['--interactive'] : []),
    ...(spec.tty ? ['--tty'] : []),
    '--',
    id,
    ...spec.command,
  ];
}

export function startArguments(id: string, streams: { readonly stdin: boolean }): string[] {
  return ['start', '--attach', DETACH_KEYS, ...(streams.stdin ? ['--interactive'] : []), '--', id];
}

/** Without keys that would be taken out of the streams. */
export function pipedStartArguments(id: string): string[] {
  return ['start', '--attach', '--interactive', '--detach-keys=', '--', id];
}

/** A container's variables are passed in the environment of the engine's program, except those by which podman finds its containers. */
export function inheritedVariables(env: Readonly<Record<string, string>>, engine: EngineName): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isWrittenOut(name, engine)));
}

function environmentArguments(env: Readonly<Record<string, string>>, engine: EngineName): string[] {
  return Object.entries(env).flatMap(([name, value]) => [
    '--env',
    isWrittenOut(name, engine) ? `${name}=${value}` : name,
  ]);
}

/** Folders of a user, which are no secret. */
function isWrittenOut(name: string, engine: EngineName): boolean {
  return engine === 'podman' && /^(HOME|TMPDIR|XDG_[A-Z]+_(HOME|DIRS?))$/.test(name);
}

export function podmanListArguments(label: string, value: string): string[] {
  return ['ps', '--all', '--no-trunc', '--filter', `label=${label}=${value}`, '--format', 'json'];
}

function hardeningArguments(hardening: Hardening): string[] {
  return [
    ...(hardening.init ? ['--init'] : []),
    '--security-opt',
    'no-new-privileges',
    '--security-opt',
    `seccomp=${hardening.seccompProfile}`,
    '--cap-drop',
    'ALL',
    ...hardening.capabilities.flatMap((capability) => ['--cap-add', capability]),
    '--pids-limit',
    String(hardening.pidsLimit),
  ];
}

/**
 * Capabilities are for a start as root. A user that is not root has none of them with Docker; podman would give them to its processes
 * and to what these start (ambient ones).
 */
function hardeningOf(hardening: Hardening, user: string | null, engine: EngineName): Hardening {
  return engine === 'podman' && user !== '0' ? { ...hardening, capabilities: [] } : hardening;
}

/** A directory in memory. Podman knows no owner of one, so each user of the container may write it: such a container has only one. */
export function tmpfsFor(directory: string, engine: EngineName): string {
  if (engine !== 'podman' || !directory.includes(',uid=')) return directory;
  return directory.replaceAll(/,[ug]id=\d+/g, '').replace(/mode=\d+/, 'mode=1777');
}

function confinementArguments({ memory, cpus, tmpfs }: Confinement, engine: EngineName): string[] {
  const limits = ['--read-only', '--memory', `${memory}m`, '--memory-swap', `${memory}m`, '--cpus', String(cpus)];
  return [...limits, ...tmpfs.flatMap((directory) => ['--tmpfs', tmpfsFor(directory, engine)])];
}

function networkOf({ network }: ContainerSpec): string | null {
  return network === null || network === 'none' ? network : `container:${network.container}`;
}

/** The value of `--mount`: comma-separated fields, quoted as in CSV if a path contains a comma, a quote or a line break. */
function mountArgument(mount: BindMount): string {
  const fields = ['type=bind', `source=${mount.source}`, `target=${mount.target}`];
  return [...fields, ...(mount.readOnly ? ['readonly'] : [])].map(csvField).join(',');
}

function volumeArgument({ volume, target }: VolumeMount): string {
  return ['type=volume', `source=${volume}`, `target=${target}`].map(csvField).join(',');
}

/** A field of comma-separated values, quoted if it has to be. */
export function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function option(name: string, value: string | null): string[] {
  return value === null ? [] : [name, value];
}
