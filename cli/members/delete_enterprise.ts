import { closeSync, openSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { deletionReply, enterpriseSettings } from '../../shared/wire/enterprise.ts';
import { departureText } from '../../shared/wire/members.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { exportOwned } from '../bindings/export_command.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';

export interface DeleteOptions {
  readonly export: string | false;
  readonly yes?: boolean;
}

/** Shows what goes, exports what the owner may read, asks for the slug, and deletes the enterprise. */
export async function deleteEnterprise({ context, options, print }: Call<DeleteOptions>): Promise<undefined> {
  if (options.yes !== true && !context.interactive) {
    throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
  }
  const client = controlClient(context, options);
  const { id, slug, name } = await client.call('GET', '/v1/enterprise', enterpriseSettings);
  const { members, ...departing } = await client.call('GET', '/v1/enterprise/deletion', deletionReply);
  print.note(`${name} (${slug}) has ${members === 1 ? '1 member, you' : `${members} members`}.`);
  print.note(`Deleted or revoked, for all of them: ${departureText(departing)}.`);
  print.note('Agents of its members lose their credentials at once. What an agent received already is not taken back.');
  if (options.export === false) print.note('Nothing is exported (--no-export).');
  else {
    const file = resolve(
      context.workingDirectory,
      options.export === '' ? `svc-export-${slug}.ndjson` : options.export,
    );
    await exportTo(client, file);
    const others = members > 1 ? ' Colleagues export what is their own themselves, with "svc export".' : '';
    print.note(`Exported to ${file}, without the values of secrets.${others}`);
  }
  if (options.yes !== true) {
    const typed = await askOrStop(context, `Type ${slug} to delete the enterprise for good: `);
    if (typed.trim() !== slug) throw new CliError(EXIT.failed, `that is not ${slug}: nothing was deleted`);
  }
  await client.callEmpty('DELETE', '/v1/enterprise', { query: { confirm: slug } });
  print.line({ deleted: id }, `deleted ${id}: svc logout forgets the sign-in here`);
}

/** Writes an export into a new file that only its user can read. */
async function exportTo(client: HttpClient, file: string): Promise<void> {
  const descriptor = createPrivate(file);
  try {
    await exportOwned(client, (line) => void writeSync(descriptor, line));
  } finally {
    closeSync(descriptor);
  }
}

function createPrivate(file: string): number {
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    const message = `cannot create ${file} (${errorCode(error)}): nothing was deleted`;
    throw new CliError(EXIT.failed, message, ['Name another file with --export FILE.']);
  }
}
