import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import type { CliContext } from './context.ts';
import { createTrustedFetch } from './terminal/trusted_fetch.ts';
import { isInForeground } from '../machine/foreground.ts';
import { pause } from '../machine/pause.ts';

/** Composition root of `svc`: the only file of the CLI that reads the arguments, the environment and the process. */

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

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

async function main(): Promise<void> {
  // Halves the start-up time for what is imported after this. The cache is as protected as the code itself; it is skipped if it
  // cannot be written.
  enableCompileCache(compileCache);
  const [{ runCommandLine }, { buildProgram }] = await Promise.all([
    import('./command_line.ts'),
    import('./program.ts'),
  ]);
  const argv = process.argv.slice(2);
  const context: CliContext = {
    env: process.env,
    // Opened only by commands that read it: opening it changes how a child that inherits it reads.
    get stdin() {
      return process.stdin;
    },
    interactive: isatty(0),
    isInForeground: () => isInForeground(),
    stdout: process.stdout,
    stderr: process.stderr,
    userHome: homedir(),
    workingDirectory: process.cwd(),
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
  process.exitCode = await runCommandLine(await buildProgram(context, process, argv), argv);
}

process.stdout.on('error', onLostReader);
process.stderr.on('error', onLostReader);

await main();
