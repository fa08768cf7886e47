// The program of `svc keys`: `node worker/entries/keys.ts rotate [--at-once] --home DIR`. It prints one line of JSON.
import { parseArgs } from 'node:util';
import type { Settings } from '../../shared/model/settings.ts';
import { fetchOutbound } from '../kernel/fetch_outbound.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import { start } from '../installation/start.ts';
import { NO_TURNS } from '../kernel/turns.ts';
import { closeFile, openDatabase } from '../store/database.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { type Clients, openClients } from './node_database.ts';
import { homeDirectory } from './node_home.ts';
import { EXIT_USAGE, log, ProgramError, refuse } from './program_error.ts';
import { masterKeys } from './vault_key_files.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { home: { type: 'string' }, 'at-once': { type: 'boolean' } },
  });
  if (positionals[0] !== 'rotate') throw new ProgramError('invalid_flag', 'use rotate', EXIT_USAGE);
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home);
  const clients = await openClients(settings, home);
  clients.replica?.close();
  const context = await openServices(settings, home, clients);
  const keyId = await context.accessKeys.rotate(context.database, { atOnce: values['at-once'] ?? false });
  const published = await context.accessKeys.listPublished(context.database);
  await closeFile(clients.client);
  const answer = { key_id: keyId, published: published.map(({ kid }) => kid) };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

/** A worker's services, because they refuse a wrong or missing vault key. */
async function openServices(settings: Settings, home: string, { client }: Clients): Promise<ProgramContext> {
  const started = await start({
    database: openDatabase(client),
    clock: SYSTEM_CLOCK,
    turns: NO_TURNS,
    outbound: fetchOutbound(false),
    lifetime: new ProgramLifetime((what) => log({ level: 'error', message: `deferred work failed: ${what}` })),
    ...(await masterKeys(settings, home)),
    makeMasterKey: null,
    localKey: null,
  });
  if (started.ok) return started.value;
  throw new ProgramError(started.error.reason, started.error.message);
}

main().catch((error: unknown) => refuse(error, 'rotating the keys failed: check SVC_DATABASE_URL and its token'));
