import { deletionReply, enterpriseSettings } from '../../shared/wire/enterprise.ts';
import { departureText } from '../../shared/wire/members.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { demandConfirmation, type DeleteOptions, exportAndConfirm } from './export_and_confirm.ts';

/** Shows what goes, exports what the owner may read, asks for the slug, and deletes the enterprise. */
export async function deleteEnterprise(call: Call<DeleteOptions>): Promise<undefined> {
  const { context, options, print } = call;
  demandConfirmation(call);
  const client = controlClient(context, options);
  const { id, slug, name } = await client.call('GET', '/v1/enterprise', enterpriseSettings);
  const { members, ...departing } = await client.call('GET', '/v1/enterprise/deletion', deletionReply);
  print.note(`${name} (${slug}) has ${members === 1 ? '1 member, you' : `${members} members`}.`);
  print.note(`Deleted or revoked, for all of them: ${departureText(departing)}.`);
  print.note('Agents of its members lose their credentials at once. What an agent received already is not taken back.');
  const others = members > 1 ? ' Colleagues export what is their own themselves, with "svc export".' : '';
  await exportAndConfirm(call, client, {
    typed: slug,
    what: 'the enterprise',
    file: `svc-export-${slug}.ndjson`,
    others,
  });
  await client.callEmpty('DELETE', '/v1/enterprise', { query: { confirm: slug } });
  print.line({ deleted: id }, `deleted ${id}: svc logout forgets the sign-in here`);
}
