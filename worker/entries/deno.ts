// The control worker on Deno: `deno run worker/entries/deno.ts --local --home DIR --port N`, or with a libSQL server.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { type Client, createClient } from '@libsql/client';
import { DEFAULT_CONTROL_PORT, parseSettings, type Settings } from '../../shared/model/settings.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { createApp } from '../app.ts';
import { fileAssets } from './file_assets.ts';
import { fileTemplates } from './file_templates.ts';
import { clientAddress } from './client_address.ts';
import { nodeOutbound } from './node_outbound.ts';
import { startAuditTimer } from './audit_timer.ts';
import { auditTurns } from './audit_turns.ts';
import type { LogEntry } from '../routes/http/app_env.ts';
import {
  type HomeFiles,
  makeMasterKey,
  type MasterKeys,
  openLocalKey,
  parseLocalKey,
  readMasterKeys,
} from '../installation/local_home.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { SYSTEM_CLOCK } from '../kernel/service_context.ts';
import { start } from '../installation/start.ts';
import { QueuedTurns } from '../kernel/turns.ts';
import { closeFile, fetchInTime, fetchReplica, openDatabase, placesToWrite, prepareFile } from '../store/database.ts';

type Handler = (request: Request, info: { remoteAddr: { hostname: string } }) => Response | Promise<Response>;

interface DenoServer {
  readonly addr: { readonly port: number };
  shutdown(): Promise<void>;
}

/** As much of Deno as this entry uses. */
interface DenoRuntime {
  readonly env: { toObject(): Record<string, string> };
  readonly args: string[];
  readonly errors: {
    readonly NotFound: new () => Error;
    readonly AlreadyExists: new () => Error;
    readonly AddrInUse: new () => Error;
    readonly AddrNotAvailable: new () => Error;
  };
  mkdir(path: string, options: { recursive: boolean; mode: number }): Promise<void>;
  readTextFile(path: string): Promise<string>;
  writeTextFile(path: string, text: string, options: { createNew: boolean; mode: number }): Promise<void>;
  open(path: string, options: { append: boolean; create: boolean; mode: number }): Promise<{ close(): void }>;
  chmod(path: string, mode: number): Promise<void>;
  link(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  addSignalListener(signal: 'SIGTERM' | 'SIGINT', listener: () => void): void;
  serve(options: { port: number; hostname: string; onListen: () => void }, handler: Handler): DenoServer;
  exit(code: number): never;
}
declare const Deno: DenoRuntime;

const EXIT_REFUSED = 1;
/** How long requests under way and what was deferred may take when the program stops: a person waits for a local one. */
const LOCAL_GRACE_MS = 1_500;
const HOSTED_GRACE_MS = 10_000;

interface Options {
  readonly local: boolean;
  readonly home: string | null;
  readonly port: number;
  readonly settings: Settings;
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options.home !== null) await Deno.mkdir(options.home, { recursive: true, mode: 0o700 });
  const client = await openClient(options);
  const lifetime = new ProgramLifetime(logDeferredFailure);
  const context = await startServices(options, client, lifetime);
  const app = createApp({
    context: () => context,
    assets: fileAssets(),
    templates: fileTemplates,
    log,
    compresses: true,
    clientAddress: (c) => clientAddress(peerIn(c.env), c.req.header('x-forwarded-for')),
  });
  const servers = listen(options, (request, { remoteAddr }) => app.fetch(request, { peer: remoteAddr.hostname }));
  const [first] = servers;
  globalThis.console.log(JSON.stringify({ listening: `http://127.0.0.1:${first.addr.port}` }));
  startAuditTimer({ turns: auditTurns(options.settings, log), context: () => context, lifetime });
  const leave = () => void closeFile(client).finally(() => Deno.exit(0));
  const stop = () => {
    lifetime.beginStop();
    setTimeout(leave, options.local ? LOCAL_GRACE_MS : HOSTED_GRACE_MS);
    void Promise.all(servers.map((server) => server.shutdown()))
      .then(() => lifetime.drain())
      .then(leave);
  };
  Deno.addSignalListener('SIGTERM', stop);
  Deno.addSignalListener('SIGINT', stop);
}

/** Another program may have the port that the system chose at the other address. */
const LISTEN_TRIES = 20;

/**
 * Listens on loopback; in local mode at ::1 too: a browser tries it first for the console's name, and whoever else listened
 * there would be given its cookies.
 */
function listen({ local, port }: Options, handler: Handler): readonly [DenoServer, ...DenoServer[]] {
  const serve = (hostname: string, at: number) =>
    Deno.serve({ port: at, hostname, onListen: () => undefined }, handler);
  for (let tries = 1; ; tries += 1) {
    const server = serve('127.0.0.1', port);
    if (!local) return [server];
    try {
      return [server, serve('::1', server.addr.port)];
    } catch (error) {
      if (error instanceof Deno.errors.AddrNotAvailable) return [server];
      if (!(error instanceof Deno.errors.AddrInUse) || port !== 0 || tries === LISTEN_TRIES) throw error;
      void server.shutdown();
    }
  }
}

/** The address at the other end of the connection. */
function peerIn(bindings: Readonly<Record<string, unknown>>): string | null {
  return typeof bindings['peer'] === 'string' ? bindings['peer'] : null;
}

function readOptions(): Options {
  const { values } = parseArgs({
    args: Deno.args,
    options: { local: { type: 'boolean' }, home: { type: 'string' }, port: { type: 'string' } },
  });
  const settings = parseSettings(Deno.env.toObject());
  if (!settings.ok) throw refusal('invalid_setting', settings.error.map(({ message }) => message).join('; '));
  const home = values.home ?? settings.value.home ?? null;
  return { local: values.local ?? false, home, port: readPort(values.port), settings: settings.value };
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_CONTROL_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw refusal('invalid_flag', `--port ${JSON.stringify(text)}: use 0 to 65535 (0 is any free port)`);
}

async function openClient({ home, settings }: Options): Promise<Client> {
  const { databaseUrl, databaseToken } = settings;
  const token = databaseToken && { authToken: databaseToken.reveal() };
  const url = databaseUrl ?? (await fileUrl(home));
  return createClient({ url, timeout: 5_000, fetch: fetchInTime, ...token });
}

/** The client of the replica; null where there is none. */
function openReplica({ databaseReplicaUrl, databaseToken }: Settings): Client | null {
  if (databaseReplicaUrl === undefined) return null;
  const token = databaseToken && { authToken: databaseToken.reveal() };
  return createClient({ url: databaseReplicaUrl, fetch: fetchReplica, ...token });
}

/** The database's file, which only its owner may read; SQLite gives the files that it puts beside it the same rights. */
async function fileUrl(home: string | null): Promise<string> {
  if (home === null) throw refusal('invalid_setting', 'no database: set SVC_DATABASE_URL, or give --home');
  const file = join(home, 'control.db');
  (await Deno.open(file, { append: true, create: true, mode: 0o600 })).close();
  await Deno.chmod(file, 0o600);
  return pathToFileURL(file).href;
}

async function startServices(options: Options, client: Client, lifetime: ProgramLifetime): Promise<ProgramContext> {
  const { home, local, settings } = options;
  const files = home === null ? null : homeFiles(home);
  if (client.protocol === 'file' && !(await prepareFile(client))) {
    throw refusal(
      'database_damaged',
      'the database file is damaged, or is not a libSQL database: restore it from a backup',
    );
  }
  const started = await start({
    database: openDatabase(client, openReplica(settings), placesToWrite(client)),
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    outbound: nodeOutbound({ isLocal: local, pinned: new Map() }),
    ...(await masterKeys(settings, files)),
    makeMasterKey: local && files !== null ? () => makeMasterKey(files) : null,
    localKey: local ? await localKey(files) : null,
    publicUrl: settings.publicUrl,
    signIn: settings.signIn,
    limits: settings.limits,
    registry: { url: settings.registryUrl },
    anchors: settings.anchors,
    printMail: log,
    log,
  });
  if (!started.ok) throw refusal(started.error.reason, started.error.message);
  return started.value;
}

async function masterKeys({ vaultKey, vaultKeyPrevious }: Settings, files: HomeFiles | null): Promise<MasterKeys> {
  if (vaultKey !== undefined) return { masterKey: vaultKey, previousMasterKey: vaultKeyPrevious ?? null };
  return files === null ? { masterKey: null, previousMasterKey: null } : required(await readMasterKeys(files));
}

/** From `SVC_LOCAL_KEY` where there is no home to keep it in. */
async function localKey(files: HomeFiles | null): Promise<Secret> {
  if (files !== null) return required(await openLocalKey(files));
  const key = parseLocalKey(Deno.env.toObject()['SVC_LOCAL_KEY'] ?? '');
  if (key === null) throw refusal('invalid_setting', '--local without --home needs SVC_LOCAL_KEY');
  return key;
}

function homeFiles(home: string): HomeFiles {
  return {
    async read(name) {
      try {
        return await Deno.readTextFile(join(home, name));
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return null;
        throw error;
      }
    },
    async createOnce(name, text) {
      const draft = join(home, `.${name}.${crypto.randomUUID()}`);
      await Deno.writeTextFile(draft, text, { createNew: true, mode: 0o600 });
      try {
        await Deno.link(draft, join(home, name));
      } catch (error) {
        if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      } finally {
        await Deno.remove(draft);
      }
    },
  };
}

function required<T>(result: { ok: true; value: T } | { ok: false; error: string }): T {
  if (result.ok) return result.value;
  throw refusal('key_damaged', result.error);
}

function refusal(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

function logDeferredFailure(what: string): void {
  log({ level: 'error', message: `deferred work failed: ${what}` });
}

/** One line of JSON on stderr. */
function log(entry: LogEntry): void {
  globalThis.console.error(JSON.stringify({ time: new Date().toISOString(), ...entry }));
}

main().catch((error: unknown) => {
  const isRefusal = error instanceof Error && 'code' in error;
  const message = isRefusal ? error.message : 'the control plane cannot start';
  log({ level: 'error', message, code: isRefusal ? String(error.code) : null });
  Deno.exit(EXIT_REFUSED);
});
