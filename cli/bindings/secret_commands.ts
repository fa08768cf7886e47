import { type RemovalOptions, withRemovalOptions } from './confirm_removal.ts';
import { parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import { secretRecord, secretsPage, type SecretRecord } from '../../shared/wire/secrets.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { type OwnerOption, ownerFilter, ownerOption, withSecretSource } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { readSecret, type SecretSource } from '../terminal/read_secret.ts';
import { agoText } from '../terminal/relative_time.ts';
import { addBorrowCommands } from '../borrow/borrow_commands.ts';
import { removeSecret } from './remove_secret.ts';
import { addSourceCommands } from './source_commands.ts';

/** Shorter credentials are not masked in replies: they would match by chance. */
const SHORTEST_SCRUBBED_BYTES = 8;

type SetOptions = SecretSource & OwnerOption & { readonly description?: string; readonly value?: true };

/** `svc secret ...`. */
export function addSecretCommands(line: CommandLine): void {
  const secret = line.program
    .command('secret')
    .description('store and list credentials in the vault (values are never shown)');
  const set = withSecretSource(
    secret
      .command('set')
      .description('store a secret, or replace its value')
      .argument('<path>', 'path in the vault, such as user/demo'),
  )
    .option('--description <text>', 'what it is for')
    .addOption(ownerOption('owner of the secret').default('personal'));
  handle<SetOptions>(line, set, setSecret);
  const list = secret
    .command('list')
    .alias('ls')
    .description('list the secrets, without their values')
    .addOption(ownerFilter());
  handle<OwnerOption>(line, list, listSecrets);
  const remove = withRemovalOptions(
    secret
      .command('rm')
      .description('delete a secret; names what uses it, and fails while anything does')
      .argument('<path>')
      .addOption(ownerOption('owner of the secret').default('personal')),
  );
  handle<OwnerOption & RemovalOptions>(line, remove, removeSecret);
  addSourceCommands(line, secret);
  addBorrowCommands(line, secret);
}

function refuseArgument(path: string): CliError {
  return new CliError(
    EXIT.usage,
    'a secret cannot be given on the command line: the process list and the shell history would show it',
    [
      `Type it at the prompt (svc secret set ${path}), pipe it (--stdin), or read it from a file (--file FILE).`,
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

async function setSecret(call: Call<SetOptions>): Promise<undefined> {
  const { options, print } = call;
  const path = parseOwnVaultPath((call.args[0] ?? '').replace(/^vault:\/\//, ''));
  if (call.args.length > 1 || options.value !== undefined) throw refuseArgument(path.ok ? path.value : 'PATH');
  if (!path.ok) throw new CliError(EXIT.usage, path.error.message);
  const value = await readSecret(call.context, options);
  const body = {
    path: path.value,
    value,
    owner: options.owner,
    ...(options.description !== undefined && { description: options.description }),
  };
  const record = await controlClient(call.context, options).call('POST', '/v1/secrets', secretRecord, { body });
  if (Buffer.byteLength(value) < SHORTEST_SCRUBBED_BYTES) {
    print.warn(`this secret has fewer than ${SHORTEST_SCRUBBED_BYTES} bytes: it is not masked if a reply contains it`);
  }
  if (value.trim() !== value) print.warn('this secret begins or ends with white space: check that this is intended');
  print.data(record, () => `${print.person ? `stored ${record.ref} (version ${record.version})` : record.ref}\n`);
}

async function listSecrets(call: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const items = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner: call.options.owner });
  call.print.rows({ items }, items, secretColumns(call.context.now()), 'No secrets yet: svc secret set user/demo');
}

function secretColumns(now: number) {
  return [
    { title: 'REFERENCE', cell: (row: SecretRecord) => row.ref },
    { title: 'OWNER', cell: (row: SecretRecord) => row.owner },
    { title: 'VERSION', cell: (row: SecretRecord) => String(row.version) },
    { title: 'STORED', cell: (row: SecretRecord) => agoText(row.updated_at, now) },
    { title: 'DESCRIPTION', cell: (row: SecretRecord) => row.description ?? '' },
  ];
}
