// The program of `svc db owner`: `node worker/entries/owner.ts ADDRESS [--enterprise NAME] --home DIR`. It prints one line
// of JSON.
import { parseArgs } from 'node:util';
import { enterpriseName } from '../../shared/wire/enterprise.ts';
import { makeFirstOwner } from '../sign_in/first_owner.ts';
import { readInstallation } from '../store/installation.ts';
import { openBesideServer } from './beside_server.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { homeDirectory } from './node_home.ts';
import { EXIT_USAGE, ProgramError, refuse } from './program_error.ts';

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
  const { context, close } = await openBesideServer(settings, home);
  if ((await readInstallation(context.database)).has('local_user_id')) throw new ProgramError('not_hosted', NOT_HOSTED);
  const made = await makeFirstOwner(context, { email: positionals[0] ?? '', enterprise: name.data });
  if (!made.ok) throw new ProgramError(made.error.code, made.error.message);
  await close();
  const { userId, enterpriseId, url, expiresAt, isNew } = made.value;
  const answer = { user_id: userId, enterprise_id: enterpriseId, url, expires_at: expiresAt, created: isNew };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

const BAD_NAME = '--enterprise: give a name of 1 to 200 characters in one line';
const NOT_HOSTED =
  'this database belongs to a control plane for one person, which has its owner: "svc console" signs a browser in';

main().catch((error: unknown) => refuse(error, 'no owner was made: check SVC_DATABASE_URL and its token'));
