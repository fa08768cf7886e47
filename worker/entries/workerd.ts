// The control worker on workerd (Cloudflare's runtime): settings come from the bindings, the database is used over
// HTTP.
import { createClient } from '@libsql/client/web';
import { parseSettings, type Settings } from '../../shared/model/settings.ts';
import { createApp } from '../app.ts';
import type { LogEntry } from '../routes/http/app_env.ts';
import { periodicTurns } from './periodic_turns.ts';
import { workerdAssets } from './workerd_assets.ts';
import { workerdServices } from './workerd_services.ts';
import { workerdTemplates } from './workerd_templates.ts';
import { fetchOutbound } from '../kernel/fetch_outbound.ts';
import { LOCAL_KEY_PROBLEM, parseLocalKey } from '../installation/local_home.ts';
import { type Lifetime, requestLifetime } from '../kernel/lifetime.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { start } from '../installation/start.ts';
import { NO_TURNS } from '../kernel/turns.ts';
import { type Database, fetchInTime, fetchReplica, openDatabase } from '../store/database.ts';
import { withSealGuard } from '../store/installation.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';

/** The platform keeps the rest of a request for half a minute. */
const SYNC_MS = 20_000;

/**
 * State that outlives a request: keys and counts, without I/O. Database clients and deferred work belong to their
 * request.
 */
type Prepared = Omit<ProgramContext, 'database' | keyof Lifetime>;

const contextFor = provideContext();

const app = createApp({
  context: (c) => contextFor(c.env, c.executionCtx),
  assets: workerdAssets(),
  templates: workerdTemplates,
  services: workerdServices,
  log,
  // Cloudflare sets this header itself and replaces the client's.
  clientAddress: (c) => c.req.header('cf-connecting-ip') ?? null,
});

type Bindings = Record<string, unknown>;
/** The lifetime of work without a request. */
interface Until {
  waitUntil(work: Promise<unknown>): void;
}

function provideContext(): (bindings: Bindings, until: Until) => Promise<ProgramContext> {
  let prepared: Prepared | null = null;
  return async (bindings, until) => {
    const settings = readSettings(bindings);
    const database = openRemoteDatabase(settings);
    const lifetime = requestLifetime((work) => until.waitUntil(work), logDeferredFailure);
    prepared ??= await prepare(bindings, settings, database, lifetime);
    return { ...prepared, database: withSealGuard(database, prepared.vault), ...lifetime };
  };
}

function readSettings(bindings: Readonly<Record<string, unknown>>): Settings {
  const settings = parseSettings(textBindings(bindings));
  if (!settings.ok) throw refusal('invalid_setting', settings.error.map(({ message }) => message).join('; '));
  return settings.value;
}

function textBindings(bindings: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(bindings).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(texts);
}

function openRemoteDatabase({ databaseUrl, databaseReplicaUrl, databaseToken }: Settings): Database {
  if (databaseUrl === undefined || databaseUrl.startsWith('file:')) {
    throw refusal('invalid_setting', 'SVC_DATABASE_URL must name a libSQL server: this runtime has no files');
  }
  const token = databaseToken && { authToken: databaseToken.reveal() };
  const client = createClient({ url: databaseUrl, fetch: fetchInTime, ...token });
  if (databaseReplicaUrl === undefined) return openDatabase(client);
  return openDatabase(client, createClient({ url: databaseReplicaUrl, fetch: fetchReplica, ...token }));
}

async function prepare(
  bindings: Readonly<Record<string, unknown>>,
  settings: Settings,
  database: Database,
  lifetime: Lifetime,
): Promise<Prepared> {
  const { SVC_LOCAL, SVC_LOCAL_KEY } = textBindings(bindings);
  const localKey = SVC_LOCAL === '1' ? parseLocalKey(SVC_LOCAL_KEY ?? '') : null;
  if (SVC_LOCAL === '1' && localKey === null) throw refusal('invalid_setting', LOCAL_KEY_PROBLEM);
  const started = await start({
    database,
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: NO_TURNS,
    outbound: fetchOutbound(localKey !== null),
    masterKey: settings.vaultKey ?? null,
    previousMasterKey: settings.vaultKeyPrevious,
    makeMasterKey: null,
    localKey,
    publicUrl: settings.publicUrl,
    mcpClientUrl: settings.mcpClientUrl,
    signIn: settings.signIn,
    limits: settings.limits,
    callsPerMinute: settings.callsPerMinute,
    quotaPercent: settings.quotaPercent,
    registry: { url: settings.registryUrl, syncMs: SYNC_MS },
    anchors: settings.anchors,
    auditRetentionDays: settings.auditRetentionDays,
    printMail: log,
    log,
  });
  if (!started.ok) throw refusal(started.error.reason, started.error.message);
  const { database: _, defer: __, stopping: ___, ...lasting } = started.value;
  return lasting;
}

/** Answered as an internal error; the log has the message. */
function refusal(code: string, message: string): Error {
  log({ level: 'error', message, code });
  return Object.assign(new Error(message), { code });
}

function logDeferredFailure(what: string): void {
  log({ level: 'error', message: `deferred work failed: ${what}` });
}

function log(entry: LogEntry): void {
  globalThis.console.log(JSON.stringify({ time: new Date().toISOString(), ...entry }));
}

type Execution = NonNullable<Parameters<typeof app.fetch>[2]>;

const worker = {
  fetch: (request: Request, bindings: Bindings, execution: Execution) => app.fetch(request, bindings, execution),
  /** Called by the platform's cron, as in wrangler.toml. */
  async scheduled(_: unknown, bindings: Bindings, until: Until): Promise<void> {
    const turns = periodicTurns(readSettings(bindings), log);
    const context = await contextFor(bindings, until);
    const done = await Promise.allSettled(turns.map(({ take }) => take(context)));
    const failed = turns.filter((_turn, at) => done[at]?.status === 'rejected');
    for (const { title: what } of failed) logDeferredFailure(what);
    if (failed.length > 0) throw new Error('periodic work failed: see the log');
  },
};
export { worker as default };
