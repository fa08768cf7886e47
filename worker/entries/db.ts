// The program of `svc db`: `node worker/entries/db.ts status|migrate|backup [FILE] --home DIR`. It prints one line of
// JSON.
import { closeSync, openSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Client } from '@libsql/client';
import { closeFile } from '../store/database.ts';
import { migrate, schemaStatus } from '../store/migrate.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { openClients } from './node_database.ts';
import { databaseInHome, homeDirectory, makeHome } from './node_home.ts';
import { EXIT_USAGE, ProgramError, refuse } from './program_error.ts';
import { errorCode } from '../../shared/model/error_code.ts';

type Action = (client: Client, file: string | undefined) => Promise<object>;

const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['status', (client) => schemaStatus(client)],
  ['migrate', applySteps],
  ['backup', backUp],
]);

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { home: { type: 'string' } } });
  const [name = '', file] = positionals;
  const action = ACTIONS.get(name);
  if (action === undefined) throw new ProgramError('invalid_flag', 'use status, migrate or backup FILE', EXIT_USAGE);
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  // Only migrating creates a missing database.
  if (name !== 'migrate') requireDatabase(settings, home, '"svc db migrate" creates one, or set SVC_DATABASE_URL');
  else if (databaseInHome(settings, home) !== null) makeHome(home);
  const { client, replica } = await openClients(settings, home);
  replica?.close();
  const answer = await action(client, file);
  await closeFile(client);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function applySteps(client: Client): Promise<object> {
  const applied = await migrate(client, new Date().toISOString());
  if (!applied.ok) throw new ProgramError(applied.error.reason, applied.error.message);
  const { schema } = await schemaStatus(client);
  return { applied: applied.value, schema };
}

/** Writes a consistent copy of the database while others write to it. */
async function backUp(client: Client, file: string | undefined): Promise<object> {
  if (file === undefined) throw new ProgramError('invalid_flag', 'backup: name the FILE to write', EXIT_USAGE);
  if (client.protocol !== 'file') throw new ProgramError('not_a_file', SERVER_BACKUP);
  const path = resolve(file);
  makeEmpty(path);
  try {
    await client.execute({ sql: 'VACUUM INTO ?', args: [path] });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
  return { file: path };
}

const SERVER_BACKUP =
  'SVC_DATABASE_URL is a server: back it up with its own means (docs/deploy.md, "Backup and restore")';

/** The copy is as private as the database. An existing file is never overwritten. */
function makeEmpty(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    const code = errorCode(error) || 'unknown';
    throw new ProgramError('file_unusable', `cannot create ${path} (${code}): name a file that does not exist yet`);
  }
}

main().catch((error: unknown) => refuse(error, 'the database command failed: check SVC_DATABASE_URL and its token'));
