import { listFittingSecrets, type SentSecret, unsentHosts } from '../../shared/resolve/sent_secrets.ts';
import { connectorHosts } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { parseVaultReference } from '../../shared/model/vault_path.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { toConnectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import {
  connectorCredentialRecord,
  connectorRecord,
  type ConnectorCredentialRecord,
  type ConnectorRecord,
  type ConnectorSummary,
} from '../../shared/wire/connectors/connectors.ts';
import { toHostBinding } from '../../shared/wire/host_binding.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { listAllBindings } from '../bindings/find_binding.ts';
import { toReference } from '../bindings/binding_input.ts';
import { adviseOfLimits, findLimitedRecords } from '../bindings/limited_bindings.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askLine } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** The reference of `--secret`, as a path or in full. */
export function secretReference(text: string): string {
  const reference = toReference(text);
  const path = parseVaultReference(reference);
  if (path.ok) return reference;
  throw new CliError(EXIT.usage, `--secret ${path.error.message}`);
}

/** Lets a stored secret serve a connector, which is active from then on. */
export function serveBySecret(
  client: HttpClient,
  { id }: Pick<ConnectorSummary, 'id'>,
  reference: string,
): Promise<ConnectorCredentialRecord> {
  const body = { kind: 'api_key', credential_ref: reference };
  return client.call('PUT', `/v1/connectors/${id}/credential`, connectorCredentialRecord, { body });
}

/** Asks which of the secrets that fit serves a connector; null if none fits or none is chosen. */
export async function askForSecret(
  { context, print }: Pick<Call, 'context' | 'print'>,
  client: HttpClient,
  connector: ConnectorRecord,
): Promise<string | null> {
  const fitting = await findFittingSecrets(client, connector);
  if (fitting.length === 0) return null;
  print.note(`Stored secrets that bindings send to ${hostsText(connector)}:`);
  for (const [index, { reference, patterns }] of fitting.entries()) {
    print.note(`  ${index + 1}  ${reference}  (${patterns.join(', ')})`);
  }
  const question = `Which one serves ${connector.fqn}? Its number; nothing: none. `;
  const answer = ((await askLine(context, question)) ?? '').trim();
  const chosen = fitting.find((_, index) => String(index + 1) === answer);
  if (chosen === undefined && answer !== '') print.warn('the answer is none of these numbers');
  return chosen?.reference ?? null;
}

/** The stored secrets that fit a connector (`listFittingSecrets`); none is what another connector keeps. */
async function findFittingSecrets(client: HttpClient, connector: ConnectorRecord): Promise<readonly SentSecret[]> {
  const { owner } = connector;
  const fitting = listFittingSecrets(await listBindingsOf(client, connector), hostsOf(connector));
  if (fitting.length === 0) return [];
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  const references = new Set(stored.map(({ ref }) => ref).filter((ref) => parseVaultReference(ref).ok));
  return fitting.filter(({ reference }) => references.has(reference));
}

/** Names the hosts that a secret newly goes to if it serves a connector. */
export async function warnOfNewHosts(
  { print }: Pick<Call, 'print'>,
  client: HttpClient,
  connector: ConnectorRecord,
  reference: string,
): Promise<void> {
  const unsent = unsentHosts(await listBindingsOf(client, connector), reference, hostsOf(connector));
  if (unsent.length > 0) {
    print.warn(toPrintable(`${reference} also goes to ${unsent.join(', ')}, where no binding sends it`));
  }
}

async function listBindingsOf(client: HttpClient, { owner }: ConnectorRecord): Promise<readonly HostBinding[]> {
  return (await listAllBindings(client)).filter((binding) => binding.owner === owner).map(toHostBinding);
}

/** Every host that gets the connector's credential. A control plane of an earlier version lists only those of the spec. */
function hostsOf({ spec }: ConnectorRecord): readonly string[] {
  return connectorHosts(toConnectorSpec(spec));
}

export function hostsText(connector: ConnectorRecord): string {
  return hostsOf(connector).join(', ');
}

/** The commands that give an API key to a connector. */
export function credentialCommands(fqn: string): string {
  return `svc connector credential set ${fqn}, or with --secret PATH for a stored secret`;
}

/** Warns of the bindings that an activation has limited to reading. */
export async function adviseOfActivation(
  call: Pick<Call, 'context' | 'print'>,
  client: HttpClient,
  { id, active }: Pick<ConnectorSummary, 'id' | 'active'>,
): Promise<void> {
  if (active) return;
  await adviseOfConnector(call, client, await client.call('GET', `/v1/connectors/${id}`, connectorRecord));
}

/** Warns of the bindings that a connector limits to reading. */
export async function adviseOfConnector(
  call: Pick<Call, 'context' | 'print'>,
  client: HttpClient,
  connector: ConnectorRecord,
): Promise<void> {
  if (connector.spec.operations.every(({ approval }) => approval !== 'required')) return;
  await adviseOfLimits(call, client, findLimitedRecords(await listAllBindings(client), [connector]));
}

/** True if a credential is stored for its connector alone, and so is deleted with it. */
export function isOwnPlace({ ref }: ConnectorCredentialRecord): boolean {
  return !parseVaultReference(ref).ok;
}
