// The control worker on workerd (Cloudflare's runtime): settings come from the bindings, the database over HTTP.
import { createClient } from '@libsql/client/web';
import { parseSettings, type Settings } from '../../shared/model/settings.ts';
import { createApp } from '../app.ts';
import type { AppContext, LogEntry } from '../routes/app_env.ts';
import { fetchOutbound } from '../services/fetch_outbound.ts';
import { parseLocalKey } from '../services/local_home.ts';
import { type ServiceContext, SYSTEM_CLOCK } from '../services/service_context.ts';
import { start } from '../services/start.ts';
import { NO_TURNS } from '../services/turns.ts';
import { type Database, fetchInTime, openDatabase } from '../store/database.ts';

/** What outlives a request: keys and counts, which do no I/O. A database client belongs to the request that made it. */
type Prepared = Omit<ServiceContext, 'database'>;

const app = createApp({ context: provideContext(), log });

function provideContext(): (c: AppContext) => Promise<ServiceContext> {
  let prepared: Prepared | null = null;
  return async (c) => {
    const settings = readSettings(c.env);
    const database = openRemoteDatabase(settings);
    prepared ??= await prepare(c.env, settings, database);
    return { ...prepared, database };
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

function openRemoteDatabase({ databaseUrl, databaseToken }: Settings): Database {
  if (databaseUrl === undefined || databaseUrl.startsWith('file:')) {
    throw refusal('invalid_setting', 'SVC_DATABASE_URL must name a libSQL server: this runtime has no files');
  }
  const token = databaseToken && { authToken: databaseToken.reveal() };
  return openDatabase(createClient({ url: databaseUrl, fetch: fetchInTime, ...token }));
}

async function prepare(
  bindings: Readonly<Record<string, unknown>>,
  settings: Settings,
  database: Database,
): Promise<Prepared> {
  const { SVC_LOCAL, SVC_LOCAL_KEY } = textBindings(bindings);
  const localKey = SVC_LOCAL === '1' ? parseLocalKey(SVC_LOCAL_KEY ?? '') : null;
  if (SVC_LOCAL === '1' && localKey === null) throw refusal('invalid_setting', 'SVC_LOCAL_KEY is not a local key');
  const masterKey = settings.vaultKey ?? null;
  const started = await start({
    database,
    clock: SYSTEM_CLOCK,
    turns: NO_TURNS,
    outbound: fetchOutbound(localKey !== null),
    masterKey,
    makeMasterKey: null,
    localKey,
    publicUrl: settings.publicUrl,
  });
  if (!started.ok) throw refusal(started.error.reason, started.error.message);
  const { database: _, ...lasting } = started.value;
  return lasting;
}

/** Answered as an internal error; the log has the sentence. */
function refusal(code: string, message: string): Error {
  log({ level: 'error', message, code });
  return Object.assign(new Error(message), { code });
}

function log(entry: LogEntry): void {
  globalThis.console.log(JSON.stringify({ time: new Date().toISOString(), ...entry }));
}

const worker = { fetch: (request: Request, bindings: Record<string, unknown>) => app.fetch(request, bindings) };
export { worker as default };
