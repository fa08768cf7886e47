// The program of `svc db owner`: `node worker/entries/owner.ts ADDRESS [--enterprise NAME] --home DIR`. It prints one line
// of JSON.
import { parseArgs } from 'node:util';
import { enterpriseName } from '../../shared/wire/enterprise.ts';
import { start } from '../installation/start.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { QueuedTurns } from '../kernel/turns.ts';
import { makeFirstOwner } from '../sign_in/first_owner.ts';
import { closeFile } from '../store/database.ts';
import { readInstallation } from '../store/installation.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { databaseOf, openClients } from './node_database.ts';
import { homeDirectory } from './node_home.ts';
import { EXIT_USAGE, log, ProgramError, refuse } from './program_error.ts';
import { masterKeys } from './vault_key_files.ts';

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { home: { type: 'string' }, enterprise: { type: 'string' } },
  });
  const name = enterpriseName.nullable().safeParse(values.enterprise ?? null);
  if (!name.success) throw new ProgramError('invalid_flag', BAD_NAME, EXIT_USAGE);
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home, 'start a worker or run "svc db migrate" first, or set SVC_DATABASE_URL');
  const clients = await openClients(settings, home);
  const database = databaseOf(clients);
  const lifetime = new ProgramLifetime((what) => log({ level: 'error', message: `deferred work failed: ${what}` }));
  const started = await start({
    database,
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    outbound: { call: () => Promise.reject(new Error('making an owner calls nobody')) },
    ...(await masterKeys(settings, home)),
    makeMasterKey: null,
    localKey: null,
    publicUrl: settings.publicUrl,
    log,
  });
  if (!started.ok) throw new ProgramError(started.error.reason, started.error.message);
  if ((await readInstallation(database)).has('local_user_id')) throw new ProgramError('not_hosted', NOT_HOSTED);
  const made = await makeFirstOwner(started.value, { email: positionals[0] ?? '', enterprise: name.data });
  if (!made.ok) throw new ProgramError(made.error.code, made.error.message);
  await lifetime.drain();
  clients.replica?.close();
  await closeFile(clients.client);
  const { userId, enterpriseId, url, expiresAt, isNew } = made.value;
  const answer = { user_id: userId, enterprise_id: enterpriseId, url, expires_at: expiresAt, created: isNew };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

const BAD_NAME = '--enterprise: give a name of 1 to 200 characters in one line';
const NOT_HOSTED =
  'this database belongs to a control plane for one person, which has its owner: "svc console" signs a browser in';

main().catch((error: unknown) => refuse(error, 'no owner was made: check SVC_DATABASE_URL and its token'));
