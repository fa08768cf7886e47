import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { CliContext } from './context.ts';
import { pause } from '../machine/pause.ts';

/** Composition root of `svc`: the only file of the CLI that reads the arguments, the environment and the process. */

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

const compileCache = join(root, 'node_modules', '.cache', 'svc');

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

/** Aborts at the first Ctrl-C, SIGTERM or SIGHUP; null until a command that goes on until then has asked for it. */
let stop: AbortController | null = null;

function stopSignal(): AbortSignal {
  if (stop !== null) return stop.signal;
  const controller = new AbortController();
  stop = controller;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => controller.abort());
  return controller.signal;
}

/**
 * A reader that went away (`svc audit list | head`) is no failure of ours. A command that goes on until it is told to stop
 * is told so, because it may have programs of its own to end.
 */
function onLostReader(error: NodeJS.ErrnoException): void {
  if (stop !== null) stop.abort();
  else process.exit(error.code === 'EPIPE' ? 0 : 1);
}

async function main(): Promise<void> {
  // Halves the time to start. Whoever may write there may write the code itself; where nobody may, it is left out.
  enableCompileCache(compileCache);
  const [{ runCommandLine }, { buildProgram }] = await Promise.all([
    import('./command_line.ts'),
    import('./program.ts'),
  ]);
  const context: CliContext = {
    env: process.env,
    // Opened only by a command that reads it: opening it changes how a child that inherits it would read.
    get stdin() {
      return process.stdin;
    },
    interactive: isatty(0),
    stdout: process.stdout,
    stderr: process.stderr,
    userHome: homedir(),
    workingDirectory: process.cwd(),
    root,
    version: version(),
    compileCache,
    fetch: (input, init) => fetch(input, init),
    now: () => Date.now(),
    pause,
    // Made only for a command that goes on until then; the others end by a signal as by default.
    get stop() {
      return stopSignal();
    },
  };
  process.exitCode = await runCommandLine(buildProgram(context, process), process.argv.slice(2));
}

process.stdout.on('error', onLostReader);
process.stderr.on('error', onLostReader);

await main();
