import { confirmRemoval, type RemovalOptions } from '../bindings/confirm_removal.ts';
import { toConnectorSpec, type ConnectorSpecRecord } from '../../shared/wire/connectors/connector_spec.ts';
import { installReply, type InstallReply } from '../../shared/wire/connectors/connectors.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { catalogNames, catalogText } from './connector_catalog.ts';
import { MAX_SPEC_BYTES, parseSpec, readInput } from './connector_spec_input.ts';
import type { OwnerOption } from '../command_options.ts';
import { findConnector } from './connector_lookup.ts';
import { overlapWarnings } from './connector_overlaps.ts';
import {
  adviseOfConnector,
  askForSecret,
  credentialCommands,
  hostsText,
  isOwnPlace,
  secretReference,
  serveBySecret,
  warnOfNewHosts,
} from './connector_secret.ts';
import { printRevoked, revokeAtProvider } from './revoke_tokens.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { counted } from '../../shared/model/sentence.ts';

export interface InstallOptions {
  readonly owner: string;
  readonly dryRun?: boolean;
  readonly secret?: string;
}

/** `svc connector install FILE|NAME`: checks the spec locally before it calls the control plane. */
export async function installConnector(call: Call<InstallOptions>): Promise<undefined> {
  const [name = ''] = call.args;
  const parsed = parseSpec(await specText(call, name));
  if (!parsed.ok) {
    const outcome = call.options.dryRun === true ? 'cannot be installed' : 'was not installed';
    throw new CliError(EXIT.failed, `${name} ${outcome}:`, parsed.error);
  }
  if (call.options.dryRun === true && call.options.secret !== undefined) {
    throw new CliError(EXIT.usage, '--dry-run checks only the spec: give it without --secret');
  }
  if (call.options.dryRun === true) reportValid(call, parsed.value);
  else await send(call, parsed.value);
}

async function send(call: Call<InstallOptions>, spec: ConnectorSpecRecord): Promise<void> {
  const { context, options, print } = call;
  const secret = options.secret === undefined ? null : secretReference(options.secret);
  if (secret !== null && spec.credential.kind !== 'api_key') {
    throw new CliError(EXIT.usage, `--secret cannot serve ${spec.connector.fqn}, which takes an oauth2 credential`, [
      `Install it without --secret, then: svc connector authorize ${spec.connector.fqn} --client-id ID`,
    ]);
  }
  const client = controlClient(context, options);
  if (secret !== null) await requireStored(client, secret, options.owner);
  const query = { owner: options.owner };
  const reply = await client.call('POST', '/v1/connectors', installReply, { body: spec, query });
  for (const warning of reply.warnings) print.warn(toPrintable(warning));
  if (secret !== null) await warnOfNewHosts(call, client, reply, secret);
  const given = secret === null ? reply : await serve(client, reply, secret);
  print.data(given, () => (print.person ? formatInstalled(given) : `${given.id}\n`));
  const connector = given.credential.state === 'ready' ? given : await offerSecret(call, client, given);
  if (!print.json) adviseCredential(call, connector);
  if (connector.active) await adviseOfConnector(call, client, connector);
}

/** Before anything is installed, so that a wrong path does not leave a connector behind, or a new version of one in force. */
async function requireStored(client: HttpClient, reference: string, owner: string): Promise<void> {
  const stored = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  if (stored.some(({ ref }) => ref === reference)) return;
  throw new CliError(EXIT.failed, `${reference} is not stored as a secret, so nothing was installed`, [
    '`svc secret list` lists the stored secrets.',
  ]);
}

async function serve(client: HttpClient, reply: InstallReply, reference: string): Promise<InstallReply> {
  return { ...reply, active: true, credential: await serveBySecret(client, reply, reference) };
}

/** At a terminal, asks which stored secret serves a connector that has no credential. */
async function offerSecret(call: Call<InstallOptions>, client: HttpClient, reply: InstallReply): Promise<InstallReply> {
  const isAsked = call.context.interactive && !call.print.json && reply.credential.kind === 'api_key';
  const chosen = isAsked ? await askForSecret(call, client, reply) : null;
  if (chosen === null) return reply;
  const served = await serve(client, reply, chosen);
  call.print.note(`${chosen} serves ${reply.fqn} on ${hostsText(reply)}.`);
  return served;
}

/** A bare word always names a connector of the catalog, never a file: a file of that name in the working directory may be untrusted. */
async function specText({ context }: Call<InstallOptions>, name: string): Promise<string> {
  if (/^[a-z0-9][a-z0-9_-]*$/i.test(name)) return catalogText(context.root, name);
  try {
    return await readInput(context, name, MAX_SPEC_BYTES);
  } catch (error) {
    const ready = name.replace(/^catalog\//, '');
    if (!(error instanceof CliError) || ready === name || !catalogNames(context.root).includes(ready)) throw error;
    throw new CliError(EXIT.failed, error.message, [
      `To install the one of the catalog: svc connector install ${ready}`,
    ]);
  }
}

function reportValid({ print }: Call, spec: ConnectorSpecRecord): void {
  const warnings = overlapWarnings(toConnectorSpec(spec));
  for (const warning of warnings) print.warn(toPrintable(warning));
  const { fqn, version } = spec.connector;
  const found = { valid: true, fqn, version, operation_count: spec.operations.length, warnings };
  print.data(found, () => `${fqn} ${version} is valid: ${counted(spec.operations.length, 'operation')}\n`);
}

function formatInstalled(reply: InstallReply): string {
  const { fqn, version, spec, owner } = reply;
  const gated = spec.operations.filter(({ approval }) => approval === 'required').length;
  const approvals = gated === 0 ? '' : `, ${gated} of them ${gated === 1 ? 'needs' : 'need'} an approval`;
  return `installed ${fqn} ${version} (${owner}): ${counted(spec.operations.length, 'operation')} on ${hostsText(reply)}${approvals}\n`;
}

function adviseCredential({ print }: Call, { fqn, active, credential }: InstallReply): void {
  if (credential.state === 'ready') return;
  const next =
    credential.kind === 'api_key'
      ? credentialCommands(fqn)
      : `svc connector authorize ${fqn}${credential.client_id === null ? ' --client-id ID' : ''}`;
  const why = active
    ? 'It has no credential, so its operations are refused'
    : 'It is inactive and changes nothing until it has a credential';
  print.note(`${why}: ${next}`);
}

/** `svc connector remove FQN`. */
export async function removeConnector(call: Call<OwnerOption & RemovalOptions>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const { id, fqn, owner, credential } = await findConnector(client, call.args[0] ?? '', call.options.owner);
  if (!(await confirmRemoval(call, client, { path: `/v1/connectors/${id}` }))) return;
  const revoked = await revokeAtProvider(client, { id, fqn, credential });
  await client.callEmpty('DELETE', `/v1/connectors/${id}`);
  const what = isOwnPlace(credential) ? ' and its credential' : `; ${credential.ref} stays`;
  if (call.print.person || call.print.json) {
    call.print.data({ deleted: id }, () => `removed ${fqn} (${owner})${what}\n`);
  }
  printRevoked(call.print, revoked);
}
