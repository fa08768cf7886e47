import { containerImageOf } from '../../shared/mcp/container_image.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { tmpfsFor } from '../../sandbox/engine/docker_arguments.ts';
import { engineNameOf } from '../../sandbox/engine/engine_address.ts';
import { engineCommand } from '../../sandbox/engine/engine_cli.ts';
import { NODE_IMAGE } from '../../sandbox/engine/node_image.ts';
import { GATEWAY_LABEL } from './process_guard.ts';

/** A command line. */
export interface ProgramCommand {
  readonly program: string;
  readonly args: readonly string[];
}

export interface ContainerMarks {
  /** Label value of the gateway: finds its containers after it was killed. */
  readonly gatewayMark: string;
  /** Label value of this run: finds its container. */
  readonly runId: string;
  /** The engine (`engine_address.ts`). */
  readonly endpoint: string;
}

/** The label of one run's container. */
export const RUN_LABEL = 'svc.mcp.run';

/** The image for a server's program if the configuration names none. */
export type RuntimeImages = Readonly<Record<string, string>>;

/** Images by package runner. The names are resolved by the engine's configured registry. */
export const DEFAULT_RUNTIME_IMAGES: RuntimeImages = {
  npx: NODE_IMAGE,
  node: NODE_IMAGE,
  uvx: 'astral/uv:python3.13-trixie-slim',
  uv: 'astral/uv:python3.13-trixie-slim',
  bunx: 'oven/bun:1-slim',
  bun: 'oven/bun:1-slim',
  deno: 'denoland/deno:debian',
};

/** The home directory in a container, in memory. */
export const CONTAINER_HOME = '/home/mcp';

/** Options that limit a container's resources and rights. */
const CONFINED = [
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
  '--pids-limit=256',
  '--memory=1g',
  '--memory-swap=1g',
  '--cpus=2',
  '--read-only',
  '--user=65532:65532',
  `--workdir=${CONTAINER_HOME}`,
] as const;

/** Directories in memory. Package runners execute files below the home directory. */
export const CONTAINER_TMPFS = [
  '/tmp:rw,nosuid,nodev,mode=1777,size=512m',
  `${CONTAINER_HOME}:rw,nosuid,nodev,exec,mode=0700,uid=65532,gid=65532,size=1g`,
] as const;

/** Options added even to a configuration's own `docker run`: a process limit and no new privileges. */
const LIMITED = ['--security-opt=no-new-privileges', '--pids-limit=1024'] as const;

/** Variables whose value goes on the command line. For all others only the name does; the value is in the environment. */
export const CONTAINER_VARIABLES = {
  HOME: CONTAINER_HOME,
  TMPDIR: '/tmp',
  npm_config_ignore_scripts: 'true',
  UV_NO_BUILD: '1',
} as const;

/** Wraps the command in a container whose image has its program; fails if no image is known. */
export function wrapInContainer(
  command: readonly string[],
  envNames: readonly string[],
  images: RuntimeImages,
  marks: ContainerMarks,
): Result<ProgramCommand, string> {
  const [program = '', ...args] = command;
  const found = imageFor(program, images);
  if (!found.ok) return found;
  const image = found.value;
  const plain = Object.entries(CONTAINER_VARIABLES).map(([name, value]) => `${name}=${value}`);
  const variables = [...plain, ...envNames].flatMap((name) => ['--env', name]);
  const tmpfs = CONTAINER_TMPFS.map((directory) => `--tmpfs=${tmpfsFor(directory, engineNameOf(marks.endpoint))}`);
  const options = [...labels(marks), ...CONFINED, ...tmpfs, ...variables, `--entrypoint=${program}`];
  return ok(runCommand(marks, ['--rm', '--interactive', '--init', ...options, image, ...args]));
}

/** The image that has a program. */
export function imageFor(program: string, images: RuntimeImages): Result<string, string> {
  const image = Object.hasOwn(images, program) ? images[program] : undefined;
  if (image !== undefined) return ok(image);
  const known = Object.keys(images).toSorted().join(', ');
  return err(`no image is known for ${JSON.stringify(program)} (known: ${known})`);
}

/**
 * A configuration's own `docker run`, bound to this machine's engine and labelled, so that it can be ended, with the id of an
 * image in the place of its name. The last `--pull` counts, so none of the configuration's fetches another image.
 */
export function markContainer(
  command: readonly string[],
  imageId: string,
  marks: ContainerMarks,
): Result<ProgramCommand, string> {
  const image = containerImageOf({ command });
  if (image === null) return err('names no image that can be started');
  const options = command.slice(command.indexOf('run') + 1, image.index);
  const started = [imageId, ...command.slice(image.index + 1)];
  return ok(runCommand(marks, [...labels(marks), ...LIMITED, ...options, '--pull=never', ...started]));
}

/** The labels of a container of this gateway. */
export function containerLabelsOf({ gatewayMark, runId }: ContainerMarks): Readonly<Record<string, string>> {
  return { [GATEWAY_LABEL]: gatewayMark, [RUN_LABEL]: runId };
}

function labels(marks: ContainerMarks): readonly string[] {
  return Object.entries(containerLabelsOf(marks)).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
}

function runCommand({ endpoint }: ContainerMarks, run: readonly string[]): ProgramCommand {
  // Podman would copy its own proxies.
  const own = engineNameOf(endpoint) === 'podman' ? ['--http-proxy=false'] : [];
  return engineCommand(endpoint, ['run', ...own, ...run]);
}
