import { connectorVaultPath, type InstalledConnector } from '../../shared/model/connector.ts';
import { findLimitedBindings } from '../../shared/resolve/limited_bindings.ts';
import { toConnectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { connectorRecord, type ConnectorRecord } from '../../shared/wire/connectors/connectors.ts';
import { toHostBinding, type HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { askYes } from '../terminal/ask.ts';
import { changeBinding } from './binding_change.ts';
import type { Call } from '../command_line.ts';
import { listAllConnectors } from '../connectors/connector_lookup.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** A binding that counts as `read` on some hosts, and the command that sets its effect explicitly. */
interface LimitedRecord {
  readonly record: HostBindingRecord;
  readonly text: string;
  readonly commands: string;
}

/** Finds bindings without an effect on hosts where one of these connectors has an operation that needs an approval. */
export function findLimitedRecords(
  bindings: readonly HostBindingRecord[],
  connectors: readonly ConnectorRecord[],
): readonly LimitedRecord[] {
  const records = new Map(bindings.map((record) => [record.id, record]));
  const limited = findLimitedBindings(bindings.map(toHostBinding), connectors.map(toInstalled));
  return limited.flatMap(({ binding: { id, host }, hosts }) => {
    const record = records.get(id);
    if (record === undefined) return [];
    const where = hosts.length === 1 && hosts[0] === host ? 'there' : `on ${hosts.join(', ')}`;
    const text = `the binding for ${host} has no effect, so it only reads ${where}: operations of a connector need an approval`;
    const commands = `svc binding effect ${id} read, or write to allow what the connector does not cover, without an approval`;
    return [{ record, text, commands }];
  });
}

/** Every installed connector with its spec. */
export async function connectorsWithSpecs(client: HttpClient): Promise<ConnectorRecord[]> {
  const records: ConnectorRecord[] = [];
  for (const { id } of await listAllConnectors(client)) {
    records.push(await client.call('GET', `/v1/connectors/${id}`, connectorRecord));
  }
  return records;
}

/** Warns about bindings that are limited to reading; at a terminal it offers to set the effect of each to `read`. */
export async function adviseOfLimits(
  { context, print }: Pick<Call, 'context' | 'print'>,
  client: HttpClient,
  limited: readonly LimitedRecord[],
): Promise<void> {
  for (const { record, text, commands } of limited) {
    print.warn(text);
    const isAsked = context.interactive && !print.json;
    if (isAsked && (await askYes(context, `Set the effect of the binding for ${record.host} to "read"?`))) {
      await changeBinding(client, record, { effect: 'read' });
      print.note(`The binding for ${record.host} (${record.id}) now has the effect read.`);
    } else {
      print.note(`Set its effect: ${commands}`);
    }
  }
}

function toInstalled({ id, owner, active, spec, content_hash: contentHash, fqn }: ConnectorRecord): InstalledConnector {
  const credential = { owner, path: connectorVaultPath(fqn) };
  const installed = { id, owner, spec: toConnectorSpec(spec), contentHash, credential };
  return active ? installed : { ...installed, inactive: true };
}
