import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { buildProgram } from '../program.ts';

export const CONTROL_URL = 'http://127.0.0.1:7420';
export const PROXY_URL = 'http://127.0.0.1:7421';
export const LOCAL_KEY = `svc_local_${'k'.repeat(43)}`;
export const HOST_TOKEN = `svc_host_${'h'.repeat(43)}`;

/** One call that a command made. */
export interface SeenCall {
  readonly method: string;
  readonly url: URL;
  readonly authorization: string | null;
  readonly ifMatch: string | null;
  readonly body: unknown;
}

/** Answers a call: a status and a body (JSON, or raw text). */
export type Answer = (call: SeenCall) => { readonly status: number; readonly body?: unknown };

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly calls: readonly SeenCall[];
}

export interface RunOptions {
  readonly answer?: Answer;
  readonly stdin?: string;
  /** What a person types at a terminal, one line for each question. */
  readonly typed?: Iterable<string>;
  /** Aborted: Ctrl-C was pressed. */
  readonly stop?: AbortSignal;
  /** The width of the terminal. */
  readonly columns?: number;
  /** The working directory; by default the state directory. */
  readonly workingDirectory?: string;
  /** Where svc is installed; by default this checkout. */
  readonly root?: string;
  /** The user's home directory; by default the state directory. */
  readonly userHome?: string;
  readonly env?: CliContext['env'];
  readonly npm?: CliContext['npm'];
  readonly pip?: CliContext['pip'];
  readonly findServerSandbox?: CliContext['findServerSandbox'];
  readonly learnTools?: CliContext['learnTools'];
  readonly terminal?: boolean;
}

/** A state directory as `svc up` leaves it while it runs; this process poses as both programs. */
export class TestHome {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-cli-'));

  constructor() {
    mkdirSync(join(this.path, 'sidecar'));
    this.write('local.key', `${LOCAL_KEY}\n`);
    this.write(join('sidecar', 'host.token'), `${HOST_TOKEN}\n`);
    const run = {
      control_url: CONTROL_URL,
      proxy_url: PROXY_URL,
      version: '4.0.0',
      started_at: '2026-01-01T00:00:00Z',
    };
    this.write('run.json', JSON.stringify({ ...run, control_pid: process.pid, sidecar_pid: process.pid }));
  }

  write(name: string, text: string, mode = 0o600): string {
    const path = join(this.path, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Runs the command line in this process; the test answers its calls. */
export async function runCli(home: TestHome, argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { context, calls, stdout, stderr } = testContext(home, options);
  const code = await runCommandLine(await buildProgram(context, new EventEmitter(), argv), argv);
  return { code, stdout: stdout.text, stderr: stderr.text, calls };
}

interface TestContext {
  readonly context: CliContext;
  readonly calls: readonly SeenCall[];
  readonly stdout: { readonly text: string };
  readonly stderr: { readonly text: string };
}

/** What a command has in a test. */
export function testContext(home: TestHome, options: RunOptions = {}): TestContext {
  const calls: SeenCall[] = [];
  const stdout = new Sink(options.terminal === true, options.columns);
  const stderr = new Sink(false);
  const context: CliContext = {
    // No test of the command line depends on what the machine can do.
    env: { SVC_HOME: home.path, PATH: process.env['PATH'], SVC_AGENT_SANDBOX: 'never', ...options.env },
    stdin: options.typed === undefined ? bytesOf(options.stdin) : Readable.from(linesOf(options.typed)),
    interactive: options.terminal === true,
    stdout,
    stderr,
    userHome: options.userHome ?? home.path,
    workingDirectory: options.workingDirectory ?? home.path,
    root: options.root ?? fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''),
    version: '4.0.0',
    compileCache: join(home.path, 'cache'),
    fetch: createAnswering(calls, options.answer),
    learnTools: options.learnTools ?? (() => Promise.resolve({ ok: false, error: 'it starts nothing in this test' })),
    findServerSandbox:
      options.findServerSandbox ?? (() => ({ ok: false, error: 'bubblewrap is not looked for in this test' })),
    npm: options.npm ?? (() => Promise.resolve({ ok: false, error: 'no npm in this test' })),
    pip: options.pip ?? {
      describe: () => Promise.resolve({ ok: false, error: 'no python3 in this test' }),
      run: () => Promise.resolve({ ok: false, error: 'no pip in this test' }),
    },
    pause: () => Promise.resolve(),
    now: () => Date.parse('2026-01-01T12:00:00Z'),
    stop: options.stop ?? new AbortController().signal,
    isInForeground: () => true,
    renewStop: () => {},
  };
  return { context, calls, stdout, stderr };
}

function bytesOf(text: string | undefined): Readable {
  return Readable.from(text === undefined ? [] : [Buffer.from(text)]);
}

/** A terminal gives one line at a time; the next one comes when the question before it has been answered. */
async function* linesOf(lines: Iterable<string>): AsyncGenerator<Buffer> {
  for (const line of lines) {
    yield Buffer.from(`${line}\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

class Sink extends Writable {
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  text = '';

  constructor(isTTY: boolean, columns?: number) {
    super();
    this.isTTY = isTTY;
    this.columns = columns;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}

function createAnswering(calls: SeenCall[], answer: Answer | undefined): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const text = await request.text();
    const call = {
      method: request.method,
      url: new URL(request.url),
      authorization: request.headers.get('authorization'),
      ifMatch: request.headers.get('if-match'),
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    };
    calls.push(call);
    if (answer === undefined) throw Object.assign(new TypeError('fetch failed'), { cause: connectionRefused() });
    const { status, body } = answer(call);
    const empty = status === 204 || body === undefined;
    return new Response(empty ? null : typeof body === 'string' ? body : JSON.stringify(body), { status });
  };
}

function connectionRefused(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
}
