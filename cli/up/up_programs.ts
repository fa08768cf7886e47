import { createServer } from 'node:net';
import { controlWorkerPreload, programFile, type ProgramName } from '../../machine/program_file.ts';
import { SETTINGS } from '../../shared/model/settings.ts';
import type { SettingReader } from '../../shared/model/setting.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HeldPort } from './held_port.ts';
import { startNodeProgram } from './node_program.ts';
import type { RotatingLog } from './rotating_log.ts';
import type { ProgramSpec } from './supervised_program.ts';
import { errorCode } from '../../shared/model/error_code.ts';

const LOOPBACK = '127.0.0.1';

/** Settings for both programs. */
interface ProgramOptions {
  readonly home: string;
  readonly held: HeldPort;
  readonly upstreamCa: readonly string[];
  readonly log: RotatingLog;
}

/** The program of the local control plane. */
export function controlProgram(
  context: CliContext,
  options: ProgramOptions & {
    readonly resolve: readonly string[];
    readonly registryUrl: string | null;
    /** The words that call this program: pages show commands with them. */
    readonly command: readonly string[];
  },
): ProgramSpec {
  const registry = options.registryUrl === null ? [] : ['--registry-url', options.registryUrl];
  const resolve = pinsOfControl(options.resolve);
  const trust = [...repeatFlag('--upstream-ca', options.upstreamCa), ...repeatFlag('--resolve', resolve)];
  // One argument, because a word may itself begin with a dash.
  const command = options.command.map((word) => `--command=${word}`);
  const flags = ['--local', '--home', options.home, ...command, ...trust, ...registry];
  return nodeProgram(context, {
    ...options,
    name: 'control plane',
    program: 'worker/entries/node',
    preloaded: controlWorkerPreload(),
    reader: 'control',
    flags,
  });
}

/**
 * The addresses of `--resolve` that are for the control plane too, in its form without the host's port. It sends nothing over plain
 * HTTP. An address without a port is also for other ports of the host there (decision 0004).
 */
export function pinsOfControl(resolve: readonly string[]): readonly string[] {
  const onHttps = resolve.map((text) => text.replace(/^([^:]*):443:/, '$1:'));
  return onHttps.filter((text) => !/^http:|^[^:]*:\d+:/i.test(text));
}

/** The sidecar's program, for the local control plane or the one that `--control` names. */
export function sidecarProgram(
  context: Pick<CliContext, 'env' | 'compileCache'>,
  options: ProgramOptions & {
    readonly controlUrl: string;
    readonly resolve: readonly string[];
    readonly denyPrivateUpstreams: boolean;
  },
): ProgramSpec {
  const flags = [
    '--home',
    options.home,
    '--control',
    options.controlUrl,
    ...repeatFlag('--upstream-ca', options.upstreamCa),
    ...repeatFlag('--resolve', options.resolve),
    ...(options.denyPrivateUpstreams ? ['--deny-private-upstreams'] : []),
  ];
  return nodeProgram(context, {
    ...options,
    name: 'sidecar',
    program: 'sidecar/main',
    preloaded: null,
    reader: 'sidecar',
    flags,
  });
}

function repeatFlag(flag: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [flag, value]);
}

interface NodeProgramPlan {
  readonly name: string;
  readonly program: ProgramName;
  readonly preloaded: string | null;
  readonly reader: SettingReader;
  readonly flags: readonly string[];
  readonly held: HeldPort;
  readonly log: RotatingLog;
}

function nodeProgram(context: Pick<CliContext, 'env' | 'compileCache'>, plan: NodeProgramPlan): ProgramSpec {
  const { port: held, descriptors } = plan.held;
  const sockets = descriptors.length === 0 ? [] : ['--listen-fds', String(descriptors.length)];
  return {
    name: plan.name,
    port: held,
    launch: (port) =>
      startNodeProgram({
        file: programFile(plan.program),
        preloaded: plan.preloaded,
        args: [...plan.flags, '--port', String(port), ...sockets],
        env: { ...environmentFor(context.env, plan.reader), NODE_COMPILE_CACHE: context.compileCache },
        log: plan.log,
        inherited: descriptors,
      }),
  };
}

/** Each program gets only the settings that it reads: the sidecar never gets the vault key. */
export function environmentFor(env: CliContext['env'], reader: SettingReader): CliContext['env'] {
  const hidden = new Set(SETTINGS.filter((setting) => !setting.readBy.includes(reader)).map((setting) => setting.name));
  return Object.fromEntries(Object.entries(env).filter(([name]) => !hidden.has(name)));
}

/** Refuses a port that another program uses; the error names the flag. */
export async function requireFreePort(port: number, flag: string): Promise<void> {
  if (port === 0) return;
  const code = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(errorCode(error) || error.message));
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => server.close(() => resolve(null)));
  });
  if (code === null) return;
  const why = code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be used (${code})`;
  throw new CliError(EXIT.failed, `port ${port} on ${LOOPBACK} ${why}`, [
    `Stop that program, or choose another port: ${flag} N (0 means any free port).`,
  ]);
}

/** Parses a port number. */
export function parsePort(text: string, flag: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new CliError(EXIT.usage, `${flag} is ${JSON.stringify(text)}: use a number from 0 (any free port) to 65535`);
}
