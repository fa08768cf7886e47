import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import type { z } from 'zod';
import type { Role } from '../../shared/model/role.ts';
import { err } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { createApp } from '../../worker/app.ts';
import { fileAssets } from '../../worker/entries/file_assets.ts';
import { fileServices } from '../../worker/entries/file_services.ts';
import { fileTemplates } from '../../worker/entries/file_templates.ts';
import type { LogEntry } from '../../worker/routes/http/app_env.ts';
import { consoleOrigin as consoleOriginOf } from '../../worker/routes/console/console_host.ts';
import type { Caller } from '../../worker/kernel/caller.ts';
import { beginEnterprise } from '../../worker/kernel/commit.ts';
import { ProgramLifetime } from '../../worker/kernel/lifetime.ts';
import type { Outbound } from '../../worker/kernel/outbound.ts';
import type { ProgramContext } from '../../worker/installation/program_context.ts';
import { freshId, nowText } from '../../worker/kernel/service_context.ts';
import { start, type StartInput } from '../../worker/installation/start.ts';
import { NO_TURNS } from '../../worker/kernel/turns.ts';
import { insertAccount } from '../../worker/store/accounts.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { migrate } from '../../worker/store/migrate.ts';
import { TestSidecar } from './sidecar_client.ts';
import type { Clock } from '../../worker/kernel/clock.ts';
import { signInLinkReply } from '../../shared/wire/account.ts';

/** A clock that a test advances; sleeping advances it too, and takes no time. */
export class TestClock implements Clock {
  ms = Date.parse('2026-01-02T03:04:05.678Z');
  /** How far the machine's clock was set back. */
  setBackMs = 0;
  now(): number {
    return this.ms - this.setBackMs;
  }
  monotonicNow(): number {
    return this.ms;
  }
  async sleep(milliseconds: number, _signal?: AbortSignal): Promise<void> {
    this.ms += milliseconds;
  }
}

/** Hashes that take no time. */
export const CHEAP_PASSWORDS = { N: 16, r: 8, p: 1 };

const ASSETS = fileAssets();

export const ORIGIN = 'http://127.0.0.1:7420';

/** Refuses outgoing calls, for a control plane that makes none. */
export const NO_OUTBOUND: Outbound = {
  call: async () => err({ reason: 'upstream_unreachable', message: 'this test has no upstream' }),
};

/** The parsed body of a reply. */
export async function parseReply<T>(schema: z.ZodType<T>, reply: Response | Promise<Response>): Promise<T> {
  return schema.parse(await (await reply).json());
}

/** Signs a browser in by a link of the local owner. Returns its cookie. */
export async function openBrowserSession(control: InProcess): Promise<string> {
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  const reply = await control.send(url);
  return (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

/** 32 random bytes as a master key. */
export function newMasterKey(): Secret {
  return new Secret(randomBytes(32).toString('base64url'));
}

export function newLocalKey(): string {
  return `svc_local_${randomBytes(32).toString('base64url')}`;
}

/** The control plane's app on its own database file, without a socket. */
export interface InProcess {
  readonly context: ProgramContext;
  readonly clock: TestClock;
  readonly localKey: string;
  readonly log: LogEntry[];
  /** Sends to the loopback address, or to a whole URL. */
  readonly send: (path: string, init?: RequestInit) => Promise<Response>;
  /** The console's origin for browsers: in local mode its own name. */
  readonly consoleOrigin: string;
  /** Sends as a browser does, to the console's name. */
  readonly inBrowser: (path: string, init?: RequestInit) => Promise<Response>;
  /** Sends as the local user, with a JSON body. */
  readonly asUser: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<Response>;
  /** Enrols a sidecar that uses the test's clock. */
  readonly enrolSidecar: () => Promise<TestSidecar>;
  /** The content of the database's files. */
  readonly databaseBytes: () => Promise<Buffer>;
  /** Waits for the work that replies did not wait for. */
  readonly settle: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** An empty database at the current schema: applying migrations is slow, because each waits for the disk. */
let emptyDatabase: Promise<Buffer> | null = null;

async function makeEmptyDatabase(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-schema-'));
  const file = join(directory, 'control.db');
  const client = createClient({ url: `file:${file}` });
  const migrated = await migrate(client, new Date(0).toISOString());
  client.close();
  if (!migrated.ok) throw new Error(migrated.error.message);
  const bytes = await readFile(file);
  await rm(directory, { recursive: true, force: true });
  return bytes;
}

/** An app, and the control plane that it serves now. */
interface TestApp {
  readonly app: ReturnType<typeof createApp>;
  serves: { readonly context: ProgramContext; readonly log: LogEntry[] } | null;
}

/** Apps of control planes that have stopped: to make one takes longer than to start a control plane, and it keeps nothing. */
const idleApps: TestApp[] = [];

function makeApp(): TestApp {
  const serving = (): NonNullable<TestApp['serves']> => {
    if (made.serves === null) throw new Error('this control plane has stopped');
    return made.serves;
  };
  const app = createApp({
    context: () => serving().context,
    assets: ASSETS,
    templates: fileTemplates,
    services: fileServices,
    log: (entry) => serving().log.push(entry),
  });
  const made: TestApp = { app, serves: null };
  return made;
}

export async function startInProcess(options: Partial<StartInput> = {}): Promise<InProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-control-'));
  emptyDatabase ??= makeEmptyDatabase();
  await writeFile(join(directory, 'control.db'), await emptyDatabase);
  const client = createClient({ url: `file:${join(directory, 'control.db')}`, timeout: 5_000 });
  // It need not outlive this process, so no write waits for the disk.
  await client.execute('PRAGMA synchronous = OFF');
  const clock = new TestClock();
  const localKey = newLocalKey();
  const lifetime = new ProgramLifetime((what, error) => {
    throw new Error(`deferred: ${what}`, { cause: error });
  });
  const started = await start({
    database: openDatabase(client),
    clock,
    turns: NO_TURNS,
    outbound: NO_OUTBOUND,
    lifetime,
    masterKey: newMasterKey(),
    makeMasterKey: null,
    localKey: new Secret(localKey),
    ...options,
  });
  if (!started.ok) throw new Error(started.error.message);
  const { signIn } = started.value;
  const context = { ...started.value, signIn: { ...signIn, passwordCost: CHEAP_PASSWORDS } };
  const log: LogEntry[] = [];
  const serving = idleApps.pop() ?? makeApp();
  serving.serves = { context, log };
  const send = async (path: string, init?: RequestInit) => serving.app.fetch(new Request(new URL(path, ORIGIN), init));
  const { local } = context;
  const consoleOrigin = local === null ? ORIGIN : consoleOriginOf(local.consoleHost, ORIGIN);
  return {
    context,
    clock,
    localKey,
    log,
    send,
    consoleOrigin,
    inBrowser: (path, init) => send(consoleOrigin + path, init),
    asUser: (method, path, body, headers) =>
      send(path, {
        method,
        headers: { authorization: `Bearer ${localKey}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async enrolSidecar() {
      const sidecar = await TestSidecar.make(send, 'X25519', () => clock.now());
      await sidecar.enrol(localKey);
      return sidecar;
    },
    async databaseBytes() {
      const files = await readdir(directory);
      return Buffer.concat(await Promise.all(files.map((file) => readFile(join(directory, file)))));
    },
    settle: () => lifetime.drain(),
    async stop() {
      await lifetime.drain();
      if (serving.serves?.context === context) {
        serving.serves = null;
        idleApps.push(serving);
      }
      client.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Another user: a member of this enterprise, or with null the admin of a new one. */
export async function addUser(
  context: ProgramContext,
  enterpriseId: string | null,
  role: Role = enterpriseId === null ? 'admin' : 'member',
): Promise<Caller> {
  const createdAt = nowText(context);
  const made = { policyVersion: 0, createdAt };
  const enterprise = {
    id: enterpriseId ?? freshId(context, 'ent'),
    slug: freshId(context, 'req'),
    name: 'E',
    ...made,
  };
  const id = freshId(context, 'usr');
  const person = { id: freshId(context, 'per'), createdAt };
  const user = { id, enterpriseId: enterprise.id, email: null, displayName: 'U', role, suspendedAt: null, ...made };
  const statements = insertAccount(context.database, { person, user, enterprise });
  const begun = enterpriseId === null ? await beginEnterprise(context.database, context.vault, enterprise.id) : [];
  await context.database.write([...(enterpriseId === null ? statements : statements.slice(1)), ...begun]);
  return { userId: id, enterpriseId: enterprise.id, role };
}

/** The user's connector `con_1` in version 1, for requests that nobody sends; it stays if it is there. */
export async function storeConnector(
  { context }: Pick<InProcess, 'context'>,
  { userId, enterpriseId }: Pick<Caller, 'userId' | 'enterpriseId'>,
): Promise<void> {
  await context.database.client.execute({
    sql: `INSERT OR IGNORE INTO connectors (id, enterprise_id, owner_id, fqn, version, title, hosts, operation_count,
      credential_kind, content_hash, spec, installed_by, created_at, updated_at)
      VALUES ('con_1', ?, ?, 'acme/x', '1', 'X', '[]', 1, 'api_key', '', '{}', ?, '', '')`,
    args: [enterpriseId, userId, userId],
  });
}
