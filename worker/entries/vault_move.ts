// The program of `svc vault move`: `node worker/entries/vault_move.ts --home DIR`. It reads a request from stdin, and prints
// values of the local vault, each sealed to the key in the request, as one line of JSON.
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { parseJson } from '../../shared/model/json.ts';
import { start } from '../installation/start.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';
import { ProgramLifetime } from '../kernel/lifetime.ts';
import { QueuedTurns } from '../kernel/turns.ts';
import { sealForMove, sealRequest } from '../services/vault/moves/seal_moved.ts';
import { findAccount } from '../store/accounts.ts';
import { closeFile } from '../store/database.ts';
import { readInstallation } from '../store/installation.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { databaseOf, openClients } from './node_database.ts';
import { homeDirectory } from './node_home.ts';
import { log, ProgramError, refuse } from './program_error.ts';
import { masterKeys } from './vault_key_files.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { home: { type: 'string' } } });
  const request = sealRequest.safeParse(parseJson(await text(process.stdin)));
  if (!request.success) throw new ProgramError('invalid_input', 'stdin is not what "svc vault move" writes');
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home);
  const clients = await openClients(settings, home);
  const database = databaseOf(clients);
  const lifetime = new ProgramLifetime((what) => log({ level: 'error', message: `deferred work failed: ${what}` }));
  const started = await start({
    database,
    lifetime,
    clock: SYSTEM_CLOCK,
    turns: new QueuedTurns(SYSTEM_CLOCK),
    outbound: { call: () => Promise.reject(new Error('sealing values calls nobody')) },
    ...(await masterKeys(settings, home)),
    makeMasterKey: null,
    localKey: null,
    publicUrl: settings.publicUrl,
    log,
  });
  if (!started.ok) throw new ProgramError(started.error.reason, started.error.message);
  const account = await findAccount(database, (await readInstallation(database)).get('local_user_id') ?? '');
  if (account === null) throw new ProgramError('not_local', NOT_LOCAL);
  const caller = { userId: account.user.id, enterpriseId: account.enterprise.id };
  const sealed = await sealForMove(started.value, caller, request.data);
  if (!sealed.ok) throw new ProgramError(sealed.error.code, sealed.error.message);
  await lifetime.drain();
  clients.replica?.close();
  await closeFile(clients.client);
  process.stdout.write(`${JSON.stringify(sealed.value)}\n`);
}

const NOT_LOCAL = 'this vault belongs to a hosted control plane: only the vault of "svc up" on a machine is moved';

main().catch((error: unknown) => refuse(error, 'no value was sealed: the vault is unchanged'));
