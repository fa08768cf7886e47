import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import type { CliContext } from './context.ts';
import { parseWaiter, type Waiter } from './launch/waiter.ts';
import { blockingOutput } from './terminal/blocking_output.ts';
import { createTrustedFetch } from './terminal/trusted_fetch.ts';
import { isInForeground } from '../machine/foreground.ts';
import { pause } from '../machine/pause.ts';

/** Composition root of `svc`: the only file of the CLI that reads the arguments, the environment and the process. */

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

const WAITER_LOOK_MS = 500;

const compileCache = join(root, 'node_modules', '.cache', 'svc');

function version(): string {
  const read: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  return read.version;
}

/** Aborts at the first Ctrl-C, SIGTERM or SIGHUP, with the signal's name; null until a long-running command asks for it. */
let stop: AbortController | null = null;

function stopSignal(): AbortSignal {
  if (stop !== null) return stop.signal;
  stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop?.abort(name));
  return stop.signal;
}

/** A closed pipe (`svc audit list | head`) is not an error. A long-running command is told to stop, because it may have programs to end. */
function onLostReader(error: NodeJS.ErrnoException): void {
  if (stop !== null) stop.abort();
  else process.exit(error.code === 'EPIPE' ? 0 : 1);
}

/** The shell that waits for a run may be killed. What would go on without it ends. */
function endWithWaiter({ pid }: Waiter): void {
  const look = setInterval(() => {
    if (process.ppid !== pid) process.kill(process.pid, 'SIGKILL');
  }, WAITER_LOOK_MS);
  look.unref();
}

const input = Object.getOwnPropertyDescriptor(process, 'stdin') ?? {};

/**
 * A run may become its command, which has the same streams. A pipe that Node opens no longer waits for its other end, for the command
 * too, and Node opens all three streams where a package imports `node:process`. So none is opened that is no terminal, and the input
 * only where a command reads it.
 */
function keepStreamsClosed(): void {
  Object.defineProperty(process, 'stdin', { value: undefined, configurable: true });
  if (!isatty(1)) Object.defineProperty(process, 'stdout', { value: blockingOutput(1) });
  if (!isatty(2)) Object.defineProperty(process, 'stderr', { value: blockingOutput(2) });
}

async function main(): Promise<void> {
  // Halves the start-up time for what is imported after this. cli/start.mjs, which only a checkout has, has done it already. The cache
  // is as protected as the code itself; it is skipped if it cannot be written.
  enableCompileCache(compileCache);
  const [first = '', ...others] = process.argv.slice(2);
  const workingDirectory = process.cwd();
  const waiter = parseWaiter('--waiter', first, workingDirectory);
  if (waiter !== null) {
    keepStreamsClosed();
    endWithWaiter(waiter);
  }
  process.stdout.on('error', onLostReader);
  process.stderr.on('error', onLostReader);
  const context: CliContext = {
    env: process.env,
    // Opened only by commands that read it: opening it changes how a child that inherits it reads.
    get stdin() {
      Object.defineProperty(process, 'stdin', input);
      return process.stdin;
    },
    interactive: isatty(0),
    isInForeground: () => isInForeground(),
    stdout: process.stdout,
    stderr: process.stderr,
    userHome: homedir(),
    workingDirectory,
    ...(waiter !== null && { waiter }),
    root,
    version: version(),
    compileCache,
    fetch: createTrustedFetch(process.env),
    now: () => Date.now(),
    pause,
    // Created only for long-running commands; signals end the others by default.
    get stop() {
      return stopSignal();
    },
    renewStop: () => {
      if (stop !== null) stop = new AbortController();
    },
  };
  const ended = parseWaiter('--ended', first, workingDirectory);
  if (ended !== null) {
    const { endRun } = await import('./launch/end_run.ts');
    return endRun(context, ended.record);
  }
  const argv = waiter === null ? process.argv.slice(2) : others;
  const [{ runCommandLine }, { buildProgram }] = await Promise.all([
    import('./command_line.ts'),
    import('./program.ts'),
  ]);
  process.exitCode = await runCommandLine(await buildProgram(context, process, argv), argv);
}

await main();
