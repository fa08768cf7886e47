import { toConnectorSpec, type ConnectorSpecRecord } from '../../shared/wire/connector_spec.ts';
import { installReply, type InstallReply } from '../../shared/wire/connectors.ts';
import { listAllBindings } from '../bindings/binding_commands.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { catalogNames, catalogText } from './connector_catalog.ts';
import { MAX_SPEC_BYTES, parseSpec, readInput } from './connector_spec_input.ts';
import type { OwnerOption } from '../command_options.ts';
import { findConnector } from './connector_lookup.ts';
import { overlapWarnings } from './connector_overlaps.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { adviseOfLimits, findLimitedRecords } from '../bindings/limited_bindings.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

export interface InstallOptions {
  readonly owner: string;
  readonly dryRun?: boolean;
}

/** `svc connector install FILE|NAME`: checks the spec locally before it calls the control plane. */
export async function installConnector(call: Call<InstallOptions>): Promise<undefined> {
  const [name = ''] = call.args;
  const parsed = parseSpec(await specText(call, name));
  if (!parsed.ok) {
    const outcome = call.options.dryRun === true ? 'cannot be installed' : 'was not installed';
    throw new CliError(EXIT.failed, `${name} ${outcome}:`, parsed.error);
  }
  if (call.options.dryRun === true) reportValid(call, parsed.value);
  else await send(call, parsed.value);
}

async function send(call: Call<InstallOptions>, spec: ConnectorSpecRecord): Promise<void> {
  const { context, options, print } = call;
  const client = controlClient(context, options);
  const query = { owner: options.owner };
  const reply = await client.call('POST', '/v1/connectors', installReply, { body: spec, query });
  for (const warning of reply.warnings) print.warn(toPrintable(warning));
  print.data(reply, () => (print.person ? formatInstalled(reply) : `${reply.id}\n`));
  if (!print.json) adviseCredential(call, reply);
  if (reply.spec.operations.some(({ approval }) => approval === 'required')) {
    await adviseOfLimits(call, client, findLimitedRecords(await listAllBindings(client), [reply]));
  }
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
  print.data(found, () => `${fqn} ${version} is valid: ${formatCount(spec.operations.length)}\n`);
}

function formatInstalled({ fqn, version, hosts, spec, owner }: InstallReply): string {
  const gated = spec.operations.filter(({ approval }) => approval === 'required').length;
  const approvals = gated === 0 ? '' : `, ${gated} of them need an approval`;
  return `installed ${fqn} ${version} (${owner}): ${formatCount(spec.operations.length)} on ${hosts.join(', ')}${approvals}\n`;
}

function formatCount(operations: number): string {
  return operations === 1 ? '1 operation' : `${operations} operations`;
}

function adviseCredential({ print }: Call, { fqn, credential }: InstallReply): void {
  if (credential.state === 'ready') return;
  const next =
    credential.kind === 'api_key'
      ? `svc connector credential set ${fqn}`
      : `svc connector authorize ${fqn}${credential.client_id === null ? ' --client-id ID' : ''}`;
  print.note(`It has no credential yet: ${next}`);
}

/** `svc connector remove FQN`. */
export async function removeConnector(call: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const { id, fqn, owner } = await findConnector(client, call.args[0] ?? '', call.options.owner);
  await client.callEmpty('DELETE', `/v1/connectors/${id}`);
  if (call.print.person || call.print.json) {
    call.print.data({ deleted: id }, () => `removed ${fqn} (${owner}) and its credential\n`);
  }
}
