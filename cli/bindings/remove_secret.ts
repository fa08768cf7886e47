import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { confirmRemoval, type RemovalOptions } from './confirm_removal.ts';
import type { OwnerOption } from '../command_options.ts';

/** Deletes the secret at a path, with its source if it has one. */
export async function removeSecret(call: Call<OwnerOption & RemovalOptions>): Promise<undefined> {
  const path = (call.args[0] ?? '').replace(/^vault:\/\//, '');
  const target = path.split('/').map(encodeURIComponent).join('/');
  const query = { owner: call.options.owner };
  const client = controlClient(call.context, call.options);
  const place = { path: `/v1/secrets/${target}`, query };
  if (!(await confirmRemoval(call, client, place))) return;
  await client.callEmpty('DELETE', place.path, { query });
  if (call.print.person || call.print.json) call.print.data({ deleted: path }, () => `deleted vault://${path}\n`);
}
