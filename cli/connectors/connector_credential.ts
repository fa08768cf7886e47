import { connectorCredentialRecord } from '../../shared/wire/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { findConnector } from './connector_lookup.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSecret, type SecretSource } from '../terminal/read_secret.ts';

export type CredentialOptions = SecretSource & OwnerOption & { readonly value?: true };

/** Shorter credentials are not masked in replies: they would match by chance. */
const SHORTEST_SCRUBBED_BYTES = 8;

/** `svc connector credential set FQN`: stores an API key. */
export async function setCredential(call: Call<CredentialOptions>): Promise<undefined> {
  const { options, print } = call;
  const [wanted = ''] = call.args;
  if (call.args.length > 1 || options.value !== undefined) throw refuseArgument();
  const client = controlClient(call.context, options);
  const connector = await findConnector(client, wanted, options.owner);
  if (connector.credential.kind !== 'api_key') {
    throw new CliError(EXIT.usage, `${connector.fqn} takes an oauth2 credential, which you authorise in the browser`, [
      `svc connector authorize ${connector.fqn}`,
    ]);
  }
  const value = await readSecret(call.context, options);
  const path = `/v1/connectors/${connector.id}/credential`;
  const record = await client.call('PUT', path, connectorCredentialRecord, { body: { kind: 'api_key', value } });
  if (Buffer.byteLength(value) < SHORTEST_SCRUBBED_BYTES) {
    print.warn(`this key has fewer than ${SHORTEST_SCRUBBED_BYTES} bytes: it is not masked if a reply contains it`);
  }
  if (value.trim() !== value) print.warn('this key begins or ends with white space: check that this is intended');
  print.data(record, () => `${print.person ? `stored ${record.ref} for ${connector.fqn}` : record.ref}\n`);
}

function refuseArgument(): CliError {
  return new CliError(
    EXIT.usage,
    'a secret cannot be given on the command line: the process list and the shell history would show it',
    [
      'Type it at the prompt (svc connector credential set FQN), pipe it (--stdin), or read it from a file (--file FILE).',
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

/** `svc connector credential rm FQN`. */
export async function removeCredential(call: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const { id, fqn } = await findConnector(client, call.args[0] ?? '', call.options.owner);
  await client.callEmpty('DELETE', `/v1/connectors/${id}/credential`);
  if (call.print.person || call.print.json) {
    call.print.data({ deleted: id }, () => `deleted the credential of ${fqn}\n`);
  }
}
