import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { HOME_LABEL, SESSION_LABEL } from './container_labels.ts';
import type { ContainerState, ImageConfig, ListedContainer } from './container_runtime.ts';
import type { EngineHost } from './engine_host.ts';

/** Parses the replies of Docker's API and of the program `podman`. An image from `docker import` has almost no settings. */

const words = z
  .array(z.string())
  .nullish()
  .transform((value) => value ?? []);

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

export function imageConfigOf(reply: unknown): ImageConfig {
  const { Id, Architecture, Config } = imageReply.parse(reply);
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

export function containerStateOf(reply: unknown): ContainerState {
  const { Id, Name, State, Config } = containerReply.parse(reply);
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

const containersReply = z
  .array(
    z.object({
      Id: z.string(),
      Names: z.array(z.string()).nullish(),
      State: z.string(),
      Labels: z.record(z.string(), z.string()).nullish(),
    }),
  )
  .nullable();

/** The reply to a list of containers: Docker's names begin with a slash. */
export function parseContainers(reply: unknown): ListedContainer[] {
  return (containersReply.parse(reply) ?? []).map(({ Id, Names, State, Labels }) => ({
    id: Id,
    name: (Names?.[0] ?? '').replace(/^\//, ''),
    running: State === 'running',
    session: Labels?.[SESSION_LABEL] ?? null,
    home: Labels?.[HOME_LABEL] ?? null,
  }));
}

const infoReply = z.object({ KernelVersion: z.string().nullish(), OperatingSystem: z.string().nullish() });

export function engineHostOf(reply: unknown): EngineHost {
  const { KernelVersion, OperatingSystem } = infoReply.parse(reply);
  return { kernelRelease: KernelVersion || null, operatingSystem: OperatingSystem || null };
}

const networkReply = z.object({
  IPAM: z
    .object({ Config: z.array(z.object({ Subnet: z.string().optional(), Gateway: z.string().optional() })).nullish() })
    .nullish(),
});

/** A network's IPv4 gateway. Older engines report none for the default network; then it is the first address. */
export function gatewayAddressOf(reply: unknown): string | null {
  for (const { Gateway, Subnet } of networkReply.parse(reply).IPAM?.Config ?? []) {
    if (Gateway !== undefined && isIPv4(Gateway)) return Gateway;
    const network = /^(\d+\.\d+\.\d+)\.0\/\d+$/.exec(Subnet ?? '')?.[1];
    if (network !== undefined) return `${network}.1`;
  }
  return null;
}
