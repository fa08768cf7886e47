import type { BindMount, Confinement, ContainerSpec, ExecSpec, Hardening, VolumeMount } from './container_runtime.ts';
import { HOME_LABEL, SESSION_LABEL } from './container_labels.ts';

/** The command lines of the `docker` program. They never contain the value of an environment variable. */

/**
 * Disables detach keys: detaching would end the launch but leave the agent running, and the default keys begin with Ctrl-P,
 * which agents use.
 */
const DETACH_KEYS = '--detach-keys=ctrl-@,ctrl-_,ctrl-@,ctrl-_';

export function createArguments(spec: ContainerSpec): string[] {
  return [
    'create',
    '--pull=never',
    ...option('--name', spec.name),
    ...Object.entries(spec.labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]),
    ...Object.keys(spec.env).flatMap((name) => ['--env', name]),
    ...spec.mounts.flatMap((mount) => ['--mount', mountArgument(mount)]),
    ...(spec.volumes ?? []).flatMap((volume) => ['--mount', volumeArgument(volume)]),
    ...option('--workdir', spec.workdir),
    ...option('--user', spec.user),
    ...option('--network', networkOf(spec)),
    ...option('--entrypoint', spec.entrypoint),
    ...(spec.stdin ? ['--interactive'] : []),
    ...(spec.tty ? ['--tty'] : []),
    ...(spec.hardening === null ? [] : hardeningArguments(spec.hardening)),
    ...(spec.confinement === undefined ? [] : confinementArguments(spec.confinement)),
    ...(spec.removedAtEnd === true ? ['--rm'] : []),
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

export function execArguments(id: string, spec: ExecSpec): string[] {
  return [
    'exec',
    ...Object.keys(spec.env).flatMap((name) => ['--env', name]),
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

export function listArguments(label: string, value: string): string[] {
  const fields = ['.ID', '.Names', '.State', `.Label "${SESSION_LABEL}"`, `.Label "${HOME_LABEL}"`];
  const format = fields.map((field) => `{{${field}}}`).join('\t');
  return ['ps', '--all', '--no-trunc', '--filter', `label=${label}=${value}`, '--format', format];
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

function confinementArguments({ memory, cpus, tmpfs }: Confinement): string[] {
  const limits = ['--read-only', '--memory', memory, '--memory-swap', memory, '--cpus', cpus];
  return [...limits, ...tmpfs.flatMap((directory) => ['--tmpfs', directory])];
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

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function option(name: string, value: string | null): string[] {
  return value === null ? [] : [name, value];
}
