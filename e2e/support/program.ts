import { type ChildProcess, spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSystemFolders } from '../../tools/system_parts.mjs';
import { HANGS_MS } from './hangs.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The folder that svc runs from: the package that package_setup.ts built, or the checkout. */
export const INSTALLED = process.env['SVC_TEST_PACKAGE'] ?? ROOT;
/** What Go compiled, its standard library above all, for all tests: to compile that takes longer than they do. */
export const GO_CACHE = join(ROOT, 'node_modules/.cache/svc/go');
export const SVC = join(INSTALLED, 'bin', 'svc');
/** The file that `node` runs for `svc vault`. */
export const VAULT_PROGRAM = join(INSTALLED, 'worker/entries', INSTALLED === ROOT ? 'vault.ts' : 'vault.js');
/** The arguments of `node` that start the control plane. */
export const CONTROL_PLANE =
  INSTALLED === ROOT
    ? ['--import', join(ROOT, 'worker/entries/quick_imports.ts'), join(ROOT, 'worker/entries/node.ts')]
    : [join(INSTALLED, 'worker/entries/node.js')];

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
}

const NOT_A_SHELLS = /^(svc_|npm_|vitest|node_|(https?|no|all)_proxy$)|_CA_BUNDLE$/i;

/** The environment of a person's shell that finds the system's programs: nothing of npm, vitest or an svc that is already set up. */
export function shellEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const environment: Record<string, string> = { NO_COLOR: '1' };
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !NOT_A_SHELLS.test(name)) environment[name] = value;
  }
  return { ...environment, PATH: withSystemFolders(environment['PATH']), ...more };
}

/** The PATH without this project's programs: an npm that a Node of the project runs would not find the machine's settings. */
export function systemPath(): string {
  const folders = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== join(ROOT, 'node_modules/.bin'));
  return withSystemFolders(folders.join(delimiter));
}

function text(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString('utf8');
}

export function start(command: string, args: readonly string[], options: RunOptions = {}): ChildProcess {
  return spawn(command, args, {
    cwd: options.cwd ?? ROOT,
    env: { ...shellEnvironment(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Runs a program until it ends and returns its output; a program that hangs is killed and fails the test. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return finish(start(command, args, options), `${command} ${args.join(' ')}`, options.input);
}

/** Gives a started program its input and waits for its end, as `run` does. */
export function finish(child: ChildProcess, what: string, input: string | Buffer = ''): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const out: Buffer[] = [];
    const errors: Buffer[] = [];
    const timer = setTimeout(() => {
      // SIGTERM first, so that it can end its own programs.
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), 6_000).unref();
      reject(new Error(`${what} did not end within ${HANGS_MS} ms; it said: ${text([...out, ...errors])}`));
    }, HANGS_MS);
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => errors.push(chunk));
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout: text(out), stderr: text(errors) });
    });
  });
}

/** Runs a program that must succeed: any other end fails the test with its output. */
export async function runOk(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return expectSuccess(await run(command, args, options), `${command} ${args.join(' ')}`);
}

/** The same for a program that has ended. */
export function expectSuccess(done: Finished, what: string): Finished {
  if (done.code === 0) return done;
  throw new Error(`${what}: exit ${done.code ?? done.signal}: ${done.stdout}${done.stderr}`);
}
