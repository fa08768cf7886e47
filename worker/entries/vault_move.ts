// The program of `svc vault move`: `node worker/entries/vault_move.ts --home DIR`. It reads a request from stdin, and prints
// values of the local vault, each sealed to the key in the request, as one line of JSON.
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { parseJson } from '../../shared/model/json.ts';
import { sealForMove, sealRequest } from '../services/vault/moves/seal_moved.ts';
import { findAccount } from '../store/accounts.ts';
import { readInstallation } from '../store/installation.ts';
import { openBesideServer } from './beside_server.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { homeDirectory } from './node_home.ts';
import { ProgramError, refuse } from './program_error.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { home: { type: 'string' } } });
  const request = sealRequest.safeParse(parseJson(await text(process.stdin)));
  if (!request.success) throw new ProgramError('invalid_input', 'stdin is not what "svc vault move" writes');
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home);
  const { context, close } = await openBesideServer(settings, home);
  const account = await findAccount(
    context.database,
    (await readInstallation(context.database)).get('local_user_id') ?? '',
  );
  if (account === null) throw new ProgramError('not_local', NOT_LOCAL);
  const caller = { userId: account.user.id, enterpriseId: account.enterprise.id };
  const sealed = await sealForMove(context, caller, request.data);
  if (!sealed.ok) throw new ProgramError(sealed.error.code, sealed.error.message);
  await close();
  process.stdout.write(`${JSON.stringify(sealed.value)}\n`);
}

const NOT_LOCAL = 'this vault belongs to a hosted control plane: only the vault of "svc up" on a machine is moved';

main().catch((error: unknown) => refuse(error, 'no value was sealed: the vault is unchanged'));
