import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { HOME_LABEL, SESSION_LABEL } from './container_labels.ts';
import type { ContainerState, ImageConfig, ListedContainer } from './container_runtime.ts';

/** Parses the output of the programs `docker` and `podman`. An image from `docker import` has almost no settings. */

const words = z
  .array(z.string())
  .nullish()
  .transform((value) => value ?? []);

/** podman replies with a list of one. */
function theOne(json: string): unknown {
  const reply: unknown = JSON.parse(json);
  return Array.isArray(reply) && reply.length === 1 ? reply[0] : reply;
}

const imageReply = z.object({
  // podman leaves the algorithm out.
  Id: z
    .string()
    .regex(/^(sha256:)?[0-9a-f]{64}$/)
    .transform((id) => (id.startsWith('sha256:') ? id : `sha256:${id}`)),
  Architecture: z.string(),
  Config: z
    .object({
      User: z.string().default(''),
      Entrypoint: words,
      Cmd: words,
      Env: words,
      WorkingDir: z.string().default(''),
      Labels: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
});

export function imageConfigOf(json: string): ImageConfig {
  const { Id, Architecture, Config } = imageReply.parse(theOne(json));
  return {
    id: Id,
    user: Config?.User ?? '',
    entrypoint: Config?.Entrypoint ?? [],
    cmd: Config?.Cmd ?? [],
    env: Config?.Env ?? [],
    workdir: Config?.WorkingDir ?? '',
    architecture: Architecture,
    labels: Config?.Labels ?? {},
  };
}

const containerReply = z.object({
  Id: z.string(),
  Name: z.string(),
  State: z.object({
    Running: z.boolean(),
    Pid: z.number().int(),
    ExitCode: z.number().int(),
    Error: z.string().default(''),
    StartedAt: z.string(),
  }),
  Config: z.object({ Labels: z.record(z.string(), z.string()).nullish() }),
});

export function containerStateOf(json: string): ContainerState {
  const { Id, Name, State, Config } = containerReply.parse(theOne(json));
  return {
    id: Id,
    name: Name.replace(/^\//, ''),
    labels: Config.Labels ?? {},
    running: State.Running,
    pid: State.Running && State.Pid > 0 ? State.Pid : null,
    wasStarted: !State.StartedAt.startsWith('0001-'),
    exitCode: State.ExitCode,
    error: State.Error,
  };
}

/** The lines of `docker ps` with the fields of `listArguments`. */
export function parseContainerList(text: string): ListedContainer[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const [id = '', name = '', state = '', session = '', home = ''] = line.split('\t');
    return { id, name, running: state === 'running', session: session || null, home: home || null };
  });
}

const podmanContainers = z
  .array(
    z.object({
      Id: z.string(),
      Names: z.array(z.string()).nullish(),
      State: z.string(),
      Labels: z.record(z.string(), z.string()).nullish(),
    }),
  )
  .nullable();

/** The reply of `podman ps --format json`. */
export function parsePodmanContainers(json: string): ListedContainer[] {
  return (podmanContainers.parse(JSON.parse(json)) ?? []).map(({ Id, Names, State, Labels }) => ({
    id: Id,
    name: Names?.[0] ?? '',
    running: State === 'running',
    session: Labels?.[SESSION_LABEL] ?? null,
    home: Labels?.[HOME_LABEL] ?? null,
  }));
}

/** The release of the engine's kernel; null if it names none. */
export function kernelReleaseOf(json: string): string | null {
  return z.string().nullable().parse(JSON.parse(json)) || null;
}

const networkReply = z.array(z.object({ Subnet: z.string().optional(), Gateway: z.string().optional() })).nullish();

/** A network's IPv4 gateway. Older engines report none for the default network; then it is the first address. */
export function gatewayAddressOf(json: string): string | null {
  for (const { Gateway, Subnet } of networkReply.parse(JSON.parse(json)) ?? []) {
    if (Gateway !== undefined && isIPv4(Gateway)) return Gateway;
    const network = /^(\d+\.\d+\.\d+)\.0\/\d+$/.exec(Subnet ?? '')?.[1];
    if (network !== undefined) return `${network}.1`;
  }
  return null;
}
