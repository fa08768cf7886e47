import {
  connectorCredentialRecord,
  type ConnectorCredentialRecord,
  type ConnectorSummary,
} from '../../shared/wire/connectors/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { findConnector, readConnector } from './connector_lookup.ts';
import {
  adviseOfActivation,
  hostsText,
  isOwnPlace,
  secretReference,
  serveBySecret,
  warnOfNewHosts,
} from './connector_secret.ts';
import { printRevoked, revokeAtProvider } from './revoke_tokens.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { readSecret, type SecretSource } from '../terminal/read_secret.ts';

export type CredentialOptions = SecretSource & OwnerOption & { readonly value?: true; readonly secret?: string };

/** Shorter credentials are not masked in replies: they would match by chance. */
const SHORTEST_SCRUBBED_BYTES = 8;

/** `svc connector credential set FQN`: stores an API key, or lets a stored secret serve the connector. */
export async function setCredential(call: Call<CredentialOptions>): Promise<undefined> {
  const { options } = call;
  const [wanted = ''] = call.args;
  if (call.args.length > 1 || options.value !== undefined) throw refuseArgument();
  const client = controlClient(call.context, options);
  const connector = await findConnector(client, wanted, options.owner);
  if (connector.credential.kind !== 'api_key') {
    throw new CliError(EXIT.usage, `${connector.fqn} takes an oauth2 credential, which you authorise in the browser`, [
      `svc connector authorize ${connector.fqn}`,
    ]);
  }
  await (options.secret === undefined
    ? storeKey(call, client, connector)
    : serve(call, client, connector, options.secret));
  await adviseOfActivation(call, client, connector);
}

async function storeKey(
  { context, options, print }: Call<CredentialOptions>,
  client: HttpClient,
  connector: ConnectorSummary,
): Promise<void> {
  const value = await readSecret(context, options);
  const path = `/v1/connectors/${connector.id}/credential`;
  const record = await client.call('PUT', path, connectorCredentialRecord, { body: { kind: 'api_key', value } });
  if (Buffer.byteLength(value) < SHORTEST_SCRUBBED_BYTES) {
    print.warn(`this key has fewer than ${SHORTEST_SCRUBBED_BYTES} bytes: it is not masked if a reply contains it`);
  }
  if (isReplaced(connector, record)) print.warn(`${connector.credential.ref} no longer serves ${connector.fqn}`);
  if (value.trim() !== value) print.warn('this key begins or ends with white space: check that this is intended');
  print.data(record, () => `${print.person ? `stored ${record.ref} for ${connector.fqn}` : record.ref}\n`);
}

async function serve(
  { options, print }: Call<CredentialOptions>,
  client: HttpClient,
  connector: ConnectorSummary,
  secret: string,
): Promise<void> {
  if (options.stdin === true || options.file !== undefined) {
    throw new CliError(
      EXIT.usage,
      '--secret names a stored secret, so there is no value to read: drop --stdin or --file',
    );
  }
  const reference = secretReference(secret);
  const installed = await readConnector(client, connector.id, connector.owner);
  await warnOfNewHosts({ print }, client, installed, reference);
  const record = await serveBySecret(client, connector, reference);
  const hosts = hostsText(installed);
  if (isReplaced(connector, record) && isOwnPlace(connector.credential)) {
    print.warn(`the key that was stored for ${connector.fqn} alone is deleted`);
  }
  print.data(record, () => `${print.person ? `${record.ref} serves ${connector.fqn} on ${hosts}` : record.ref}\n`);
}

/** True if the connector had a credential at another place. */
function isReplaced({ credential: before }: ConnectorSummary, now: ConnectorCredentialRecord): boolean {
  return before.updated_at !== null && before.ref !== now.ref;
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
  const { id, fqn, credential, active } = await findConnector(client, call.args[0] ?? '', call.options.owner);
  const revoked = await revokeAtProvider(client, { id, fqn, credential });
  await client.callEmpty('DELETE', `/v1/connectors/${id}/credential`);
  if (call.print.person || call.print.json) {
    const what = isOwnPlace(credential)
      ? `deleted the credential of ${fqn}`
      : `${credential.ref} no longer serves ${fqn}`;
    call.print.data({ deleted: id }, () => `${what}\n`);
  }
  printRevoked(call.print, revoked);
  if (active && !call.print.json) {
    call.print.note(`${fqn} stays active: its operations are refused until it has a credential again, or is removed.`);
  }
}
