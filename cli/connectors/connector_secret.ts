import type { HostBinding } from '../../shared/model/host_binding.ts';
import { formatVaultReference, parseVaultReference } from '../../shared/model/vault_path.ts';
import { compilePolicy } from '../../shared/resolve/resolve.ts';
import {
  connectorCredentialRecord,
  connectorRecord,
  type ConnectorCredentialRecord,
  type ConnectorRecord,
  type ConnectorSummary,
} from '../../shared/wire/connectors.ts';
import { toHostBinding } from '../../shared/wire/host_binding.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { listAllBindings } from '../bindings/binding_commands.ts';
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
  connector: ConnectorSummary,
): Promise<string | null> {
  const fitting = await findFittingSecrets(client, connector);
  if (fitting.length === 0) return null;
  print.note(`Stored secrets that bindings send to ${connector.hosts.join(', ')}:`);
  for (const [index, { reference, hosts }] of fitting.entries()) {
    print.note(`  ${index + 1}  ${reference}  (${hosts.join(', ')})`);
  }
  const question = `Which one serves ${connector.fqn}? Its number; nothing: none. `;
  const answer = ((await askLine(context, question)) ?? '').trim();
  const chosen = fitting.find((_, index) => String(index + 1) === answer);
  if (chosen === undefined && answer !== '') print.warn('the answer is none of these numbers');
  return chosen?.reference ?? null;
}

interface FittingSecret {
  readonly reference: string;
  /** The patterns of the bindings that use it. */
  readonly hosts: readonly string[];
}

/** The stored secrets of a connector's owner that bindings send to one of its hosts. A signing key is none, because it is never sent; nor is what another connector keeps. */
export async function findFittingSecrets(
  client: HttpClient,
  { owner, hosts }: ConnectorSummary,
): Promise<readonly FittingSecret[]> {
  const bindings = (await listAllBindings(client)).filter((binding) => binding.owner === owner).map(toHostBinding);
  const policy = compilePolicy(bindings);
  const acting = new Set(hosts.flatMap((host) => policy.bindingsFor(host)).filter(sendsItsCredential));
  const patterns = Map.groupBy(acting, ({ credential }) => formatVaultReference(credential.path));
  if (patterns.size === 0) return [];
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  const references = new Set(stored.map(({ ref }) => ref).filter((ref) => parseVaultReference(ref).ok));
  return [...patterns]
    .filter(([reference]) => references.has(reference))
    .map(([reference, using]) => ({ reference, hosts: [...new Set(using.map(({ host }) => host))] }))
    .toSorted((a, b) => (a.reference < b.reference ? -1 : 1));
}

function sendsItsCredential({ injection }: HostBinding): boolean {
  return injection.scheme !== 'sigv4-resign';
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
