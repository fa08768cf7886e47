import { err, ok, type Result } from '../../shared/model/result.ts';
import { GATEWAY_LABEL } from './process_guard.ts';

/** A program as it is started. */
export interface ProgramCommand {
  readonly program: string;
  readonly args: readonly string[];
}

export interface ContainerMarks {
  /** Of the gateway; its containers are ended by it when the gateway was killed. */
  readonly gatewayMark: string;
  /** Of this run; the container is ended by it. */
  readonly runId: string;
  /** The engine, as `unix://...`. */
  readonly endpoint: string;
}

/** The label of one run's container. */
export const RUN_LABEL = 'svc.mcp.run';

/** Where a server's program runs when its configuration names none of its own: an image with the program in it. */
export type RuntimeImages = Readonly<Record<string, string>>;

/** By the program that starts a package. The names are for whatever registry the engine is set up with. */
export const DEFAULT_RUNTIME_IMAGES: RuntimeImages = {
  npx: 'node:24-slim',
  node: 'node:24-slim',
  uvx: 'astral/uv:python3.13-trixie-slim',
  uv: 'astral/uv:python3.13-trixie-slim',
  bunx: 'oven/bun:1-slim',
  bun: 'oven/bun:1-slim',
  deno: 'denoland/deno:debian',
};

const HOME = '/home/mcp';

/** What keeps a container small and without rights, whatever is in it. */
const CONFINED = [
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
  '--pids-limit=256',
  '--memory=1g',
  '--memory-swap=1g',
  '--cpus=2',
  '--read-only',
  '--user=65532:65532',
  '--tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size=512m',
  // Package runners start what they have put below the home directory.
  `--tmpfs=${HOME}:rw,nosuid,nodev,exec,mode=0700,uid=65532,gid=65532,size=1g`,
  `--workdir=${HOME}`,
] as const;

/** What even a configuration's own `docker run` gets: a process limit, and no way to more rights than it began with. */
const LIMITED = ['--security-opt=no-new-privileges', '--pids-limit=1024'] as const;

/** Set in the container as it is; of everything else only the name is on the command line, and the value in the environment. */
const PLAIN_IN_CONTAINER = [`HOME=${HOME}`, 'TMPDIR=/tmp', 'npm_config_ignore_scripts=true', 'UV_NO_BUILD=1'] as const;

/** The command in a container of an image that has its program; null when no image is known to have it. */
export function inContainer(
  command: readonly string[],
  envNames: readonly string[],
  images: RuntimeImages,
  marks: ContainerMarks,
): Result<ProgramCommand, string> {
  const [program = '', ...args] = command;
  const image = Object.hasOwn(images, program) ? images[program] : undefined;
  if (image === undefined) {
    const known = Object.keys(images).toSorted().join(', ');
    return err(`no image is known that has ${JSON.stringify(program)} (there is one for ${known})`);
  }
  const variables = [...PLAIN_IN_CONTAINER, ...envNames].flatMap((name) => ['--env', name]);
  const options = [...labels(marks), ...CONFINED, ...variables, `--entrypoint=${program}`];
  return ok(docker(marks, ['--rm', '--interactive', '--init', ...options, image, ...args]));
}

/** A configuration's own `docker run`, bound to this machine's engine and marked, so that it can be ended. */
export function asContainer(command: readonly string[], marks: ContainerMarks): ProgramCommand {
  const at = command.indexOf('run');
  return docker(marks, [...labels(marks), ...LIMITED, ...command.slice(at + 1)]);
}

/** True for a command that starts a container by itself. */
export function isContainerCommand(command: readonly string[]): boolean {
  return /(^|\/)docker$/.test(command[0] ?? '');
}

function labels({ gatewayMark, runId }: ContainerMarks): readonly string[] {
  return ['--label', `${GATEWAY_LABEL}=${gatewayMark}`, '--label', `${RUN_LABEL}=${runId}`];
}

function docker({ endpoint }: ContainerMarks, run: readonly string[]): ProgramCommand {
  return { program: 'docker', args: ['--host', endpoint, 'run', ...run] };
}
