import type { Command } from 'commander';
import { accountDeletionReply, meReply } from '../../shared/wire/account.ts';
import { departureText } from '../../shared/wire/members.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { type DeleteOptions, demandConfirmation, exportAndConfirm } from './export_and_confirm.ts';

/** `svc account delete`. */
export function addAccountDeletion(line: CommandLine, account: Command): void {
  const deletion = account
    .command('delete')
    .description('delete your account with everything that is its own, after an export')
    .option('--export <file>', 'new file for the export (default: svc-export-YOUR-ID.ndjson)', '')
    .option('--no-export', 'export nothing')
    .option('--yes', 'do not ask');
  handle<DeleteOptions>(line, deletion, deleteAccount);
}

/** Shows what goes, exports it, asks for the user's address, and deletes the account. */
async function deleteAccount(call: Call<DeleteOptions>): Promise<undefined> {
  const { context, options, print } = call;
  demandConfirmation(call);
  const client = controlClient(context, options);
  const { id } = await client.call('GET', '/v1/me', meReply);
  const deletion = await client.call('GET', '/v1/me/deletion', accountDeletionReply);
  const { confirm, deletes_enterprise: isAlone, ...departing } = deletion;
  print.note(isAlone ? 'Nobody else is in your enterprise: it is deleted too.' : 'You leave the enterprise.');
  print.note(`Deleted or revoked: ${departureText(departing)}.`);
  print.note('Agents lose your credentials at once. What an agent received already is not taken back.');
  await exportAndConfirm(call, client, {
    typed: confirm,
    what: 'your account',
    file: `svc-export-${id}.ndjson`,
    others: '',
  });
  await client.callEmpty('DELETE', '/v1/me', { query: { confirm } });
  print.line({ deleted: id }, `deleted ${id}: svc logout forgets the sign-in here`);
}
