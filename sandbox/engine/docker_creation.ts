import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Result } from '../../shared/model/result.ts';
import type {
  BindMount,
  Confinement,
  ContainerSpec,
  Hardening,
  RuntimeFailure,
  VolumeMount,
} from './container_runtime.ts';
import { type DockerApi, readReply } from './docker_api.ts';

const created = z.object({ Id: z.string().regex(/^[0-9a-f]{64}$/) });

/**
 * Creates a container by Docker's API; returns its id. The values of its environment are in the body of the call alone, and none of
 * the user's settings of the program `docker` apply.
 */
export async function createContainer(api: DockerApi, spec: ContainerSpec): Promise<Result<string, RuntimeFailure>> {
  const query = spec.name === null ? '' : `?name=${encodeURIComponent(spec.name)}`;
  const reply = await api({ method: 'POST', path: `/containers/create${query}`, body: creationOf(spec) });
  return readReply(reply, (body) => created.parse(body).Id);
}

/** The body of the call, as the program `docker create` writes it for the same container. */
export function creationOf(spec: ContainerSpec): object {
  const { image, labels, env, workdir, user, entrypoint, command, tty, stdin } = spec;
  return {
    Image: image,
    Labels: labels,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(workdir !== null && { WorkingDir: workdir }),
    ...(user !== null && { User: user }),
    ...(entrypoint !== null && { Entrypoint: [entrypoint] }),
    ...(command.length > 0 && { Cmd: command }),
    Tty: tty,
    OpenStdin: stdin,
    // Its input ends with the one client that is attached.
    StdinOnce: stdin,
    AttachStdin: stdin,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: hostConfigOf(spec),
  };
}

function hostConfigOf(spec: ContainerSpec): object {
  const { mounts, volumes = [], network, hardening, confinement, removedAtEnd, keepsNoLog } = spec;
  return {
    Mounts: [...mounts.map(bindOf), ...volumes.map(volumeOf)],
    ...(network !== null && { NetworkMode: network === 'none' ? 'none' : `container:${network.container}` }),
    ...(hardening !== null && hardeningOf(hardening)),
    ...(confinement !== undefined && confinementOf(confinement)),
    AutoRemove: removedAtEnd === true,
    ...(keepsNoLog === true && { LogConfig: { Type: 'none' } }),
  };
}

function bindOf({ source, target, readOnly }: BindMount): object {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
}

function volumeOf({ volume, target }: VolumeMount): object {
  return { Type: 'volume', Source: volume, Target: target };
}

function hardeningOf({ init, capabilities, pidsLimit, seccompProfile }: Hardening): object {
  return {
    Init: init,
    SecurityOpt: ['no-new-privileges', `seccomp=${readFileSync(seccompProfile, 'utf8')}`],
    CapDrop: ['ALL'],
    CapAdd: capabilities,
    PidsLimit: pidsLimit,
  };
}

function confinementOf({ memory, cpus, tmpfs }: Confinement): object {
  const bytes = memory * MIB;
  const entries = tmpfs.map((directory): readonly [string, string] => {
    const [path = '', ...options] = directory.split(':');
    return [path, options.join(':')];
  });
  return {
    ReadonlyRootfs: true,
    Memory: bytes,
    // As much with swap as without: none.
    MemorySwap: bytes,
    NanoCpus: cpus * NANO,
    Tmpfs: Object.fromEntries(entries),
  };
}

const MIB = 1024 * 1024;
const NANO = 1_000_000_000;
