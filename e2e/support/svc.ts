import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { kill } from './process.ts';
import { type Finished, run, type RunOptions, runOk, start, SVC } from './program.ts';
import type { ProxyAccess } from './raw_client.ts';
import { waitFor } from './wait_for.ts';

const runFile = z.object({
  control_url: z.url(),
  proxy_url: z.url(),
  control_pid: z.number(),
  sidecar_pid: z.number(),
  version: z.string(),
  started_at: z.string(),
});
export type RunFile = z.infer<typeof runFile>;

const eventRecord = z.object({
  id: z.string(),
  type: z.string(),
  time: z.string(),
  session_id: z.string().nullable(),
  sidecar_id: z.string().nullable(),
  data: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])),
});
/** An audit event as the API returns it. */
export type Event = z.infer<typeof eventRecord>;

const health = z.object({ status: z.string() });
const created = z.object({ id: z.string() });
const account = z.object({ policy_version: z.number() });
const eventPage = z.object({ items: z.array(eventRecord), next_cursor: z.string().nullish() });
const madeSession = z.object({
  session_id: z.string(),
  token: z.string(),
  proxy_url: z.string(),
  ca_pem_path: z.string(),
  ca_bundle_path: z.string(),
  sentinels: z.array(z.object({ env: z.string(), value: z.string() })),
});

export interface UpOptions {
  /** An existing home to start on; else a new one, removed at the end. */
  readonly home?: string;
  readonly upstreamCaFiles?: readonly string[];
  /** `host:address:port`, as the flag takes it. */
  readonly resolve?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  /** The start command, without flags; `svc up` by default. */
  readonly command?: readonly [string, ...string[]];
}

export interface ApiReply {
  readonly status: number;
  readonly body: unknown;
}

/** A sandbox session, made through the sidecar's local API as a launch does it. */
export interface Session extends ProxyAccess {
  readonly sentinels: readonly { env: string; value: string }[];
  /** The file with its CA and the public ones. */
  readonly caBundle: string;
  /** Ends it; afterwards its events are in the audit log. */
  end(): Promise<void>;
}

/** The packages of the tests' MCP servers do not exist: no registry is asked for them. */
const NO_REGISTRY = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' };
/** For what asks a registry: npm ignores empty settings, so these leave its own. */
export const OWN_REGISTRY = { npm_config_registry: '', npm_config_fetch_retries: '' };
/** Only ends a program that hangs. */
const STOP_MS = 120_000;

const running = new Set<Svc>();

/** Stops every svc that a test started and did not stop. */
export async function stopRunning(): Promise<void> {
  await Promise.all([...running].map((svc) => svc.stop().catch(() => undefined)));
}

/** `svc up` as a real process on its own home, and what a person does with it. */
export class Svc {
  readonly home: string;
  process: ChildProcess;
  readonly #options: UpOptions;
  #output = '';
  /** When what stands in `run.json` from before was started: it says nothing about this start. */
  #leftOver: string | undefined;
  #run: RunFile | undefined;

  private constructor(options: UpOptions) {
    this.#options = options;
    this.home = options.home ?? mkdtempSync(join(tmpdir(), 'svc-e2e-home-'));
    this.process = this.#launch();
  }

  #launch(): ChildProcess {
    this.#leftOver = readRunFile(this.home)?.started_at;
    const [program, ...words] = this.#options.command ?? [SVC, 'up'];
    const env = { ...NO_REGISTRY, ...this.#options.env };
    this.process = start(program, [...words, ...upFlags(this.home, this.#options)], { env });
    this.process.stdin?.end();
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.#output += chunk.toString('utf8')));
    }
    return this.process;
  }

  /** Starts it and waits until it accepts requests. */
  static async up(options: UpOptions = {}): Promise<Svc> {
    const svc = new Svc(options);
    running.add(svc);
    try {
      await svc.ready();
    } catch (error) {
      await svc.stop();
      throw error;
    }
    return svc;
  }

  /** Everything that `svc up` has printed so far. */
  get output(): string {
    return this.#output;
  }

  get runFile(): RunFile {
    if (this.#run === undefined) throw new Error('svc up is not ready');
    return this.#run;
  }

  async ready(): Promise<void> {
    await waitFor('svc up to be ready', async () => {
      if (this.#ended) throw new Error(`svc up ended (${this.process.exitCode}): ${this.#output}`);
      const file = readRunFile(this.home);
      if (file === undefined || file.started_at === this.#leftOver) return false;
      this.#run = file;
      // `degraded` takes requests too: the channel has not answered yet, and the policy of the last run is good.
      const answers = await Promise.all([healthOf(file.proxy_url), healthOf(file.control_url)]);
      return answers.every((status) => status !== null && status !== 'starting');
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}; svc up said: ${this.#output}`, { cause: error });
    });
  }

  /** The status of `/v1/health`. */
  async health(): Promise<string> {
    return health.parse((await this.local('GET', '/v1/health')).body).status;
  }

  /**
   * Waits until both programs run and answer again after one was killed: `svc up` has started it anew, or has ended, and
   * then it is started again here as a person would.
   */
  async comesBack(): Promise<void> {
    const before = this.runFile;
    await waitFor('svc to notice', () => {
      const now = readRunFile(this.home);
      return this.#ended || now?.control_pid !== before.control_pid || now.sidecar_pid !== before.sidecar_pid;
    });
    if (this.#ended) this.#launch();
    await this.ready();
  }

  get #ended(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  /** Runs the CLI against this home. */
  cli(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return run(SVC, args, { ...options, env: { ...NO_REGISTRY, SVC_HOME: this.home, ...options.env } });
  }

  /** Runs the CLI and returns its standard output; fails unless it succeeds. */
  async ok(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const env = { ...NO_REGISTRY, SVC_HOME: this.home, ...options.env };
    return (await runOk(SVC, args, { ...options, env })).stdout;
  }

  /** Calls the control API as the local user. */
  api(method: string, path: string, body?: unknown): Promise<ApiReply> {
    return callJson(method, `${this.runFile.control_url}${path}`, join(this.home, 'local.key'), body);
  }

  async secret(path: string, value: string): Promise<void> {
    expectStatus(await this.api('POST', '/v1/secrets', { path, value }), 201, 200);
  }

  /** Adds a binding from its record's fields and returns its id. */
  async binding(fields: Readonly<Record<string, unknown>>): Promise<string> {
    const reply = await this.api('POST', '/v1/host-bindings', fields);
    expectStatus(reply, 201);
    return created.parse(reply.body).id;
  }

  /** Calls the sidecar's local API with the host token. */
  local(method: string, path: string, body?: unknown): Promise<ApiReply> {
    return callJson(method, `${this.runFile.proxy_url}${path}`, join(this.home, 'sidecar', 'host.token'), body);
  }

  /** Opens a session whose policy includes every change made so far. */
  async session(): Promise<Session> {
    const me = account.parse((await this.api('GET', '/v1/me')).body);
    const reply = await this.local('POST', '/v1/sandbox-proxy/sessions', {
      name: 'e2e',
      min_policy_version: me.policy_version,
    });
    expectStatus(reply, 201);
    const made = madeSession.parse(reply.body);
    return {
      sessionId: made.session_id,
      token: made.token,
      proxyUrl: made.proxy_url,
      caPem: readFileSync(made.ca_pem_path, 'utf8'),
      caBundle: made.ca_bundle_path,
      sentinels: made.sentinels,
      end: async () => expectStatus(await this.local('DELETE', `/v1/sandbox-proxy/sessions/${made.session_id}`), 204),
    };
  }

  /** Every audit event, oldest first. */
  async events(): Promise<Event[]> {
    const found: Event[] = [];
    let cursor: string | null | undefined = '';
    while (typeof cursor === 'string') {
      const page: ApiReply = await this.api(
        'GET',
        `/v1/audit-events?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      expectStatus(page, 200);
      const { items, next_cursor } = eventPage.parse(page.body);
      found.push(...items);
      cursor = next_cursor;
    }
    return found.toSorted((a, b) => a.time.localeCompare(b.time));
  }

  async eventsOf(session: Pick<Session, 'sessionId'>): Promise<Event[]> {
    return (await this.events()).filter((event) => event.session_id === session.sessionId);
  }

  /** Stops it like Ctrl-C and waits for its end; what is left of it is killed. */
  async stop(options: { keepHome?: boolean; signal?: NodeJS.Signals } = {}): Promise<void> {
    const signal = options.signal ?? 'SIGINT';
    running.delete(this);
    const ended = new Promise<boolean>((resolve) => {
      if (this.#ended) resolve(true);
      this.process.on('exit', () => resolve(true));
      setTimeout(() => resolve(false), STOP_MS).unref();
    });
    this.process.kill(signal);
    if (!(await ended)) {
      for (const pid of [this.process.pid, this.#run?.control_pid, this.#run?.sidecar_pid]) kill(pid, 'SIGKILL');
      throw new Error(`svc up did not stop on ${signal}; it said: ${this.#output}`);
    }
    if (this.#options.home === undefined && options.keepHome !== true)
      rmSync(this.home, { recursive: true, force: true });
  }
}

async function healthOf(url: string): Promise<string | null> {
  const reply = await fetch(`${url}/v1/health`).catch(() => null);
  return reply?.ok === true ? health.parse(await reply.json()).status : null;
}

async function callJson(method: string, url: string, tokenFile: string, body?: unknown): Promise<ApiReply> {
  const headers: Record<string, string> = { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const reply = await fetch(url, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  const text = await reply.text();
  return { status: reply.status, body: text === '' ? null : JSON.parse(text) };
}

export function readRunFile(home: string): RunFile | undefined {
  const file = join(home, 'run.json');
  if (!existsSync(file)) return undefined;
  try {
    return runFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

function repeat(flag: string, values: readonly string[] = []): string[] {
  return values.flatMap((value) => [flag, value]);
}

function upFlags(home: string, options: UpOptions): string[] {
  const fixed = ['--home', home, '--control-port', '0', '--proxy-port', '0'];
  return [
    ...fixed,
    ...repeat('--upstream-ca', options.upstreamCaFiles),
    ...repeat('--resolve', options.resolve),
    ...(options.flags ?? []),
  ];
}

export function expectStatus(reply: ApiReply, ...wanted: readonly number[]): void {
  if (!wanted.includes(reply.status)) {
    throw new Error(`status ${reply.status} where ${wanted.join(' or ')} was due: ${JSON.stringify(reply.body)}`);
  }
}
