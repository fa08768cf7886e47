import { connectorVaultPath, type InstalledConnector } from '../../shared/model/connector.ts';
import { findLimitedBindings } from '../../shared/resolve/limited_bindings.ts';
import { toConnectorSpec } from '../../shared/wire/connector_spec.ts';
import { connectorRecord, type ConnectorRecord } from '../../shared/wire/connectors.ts';
import { toHostBinding, type HostBindingRecord } from '../../shared/wire/host_binding.ts';
import { askYes } from '../terminal/ask.ts';
import { changeEffect } from './binding_effect.ts';
import type { Call } from '../command_line.ts';
import { allConnectors } from '../connectors/connector_lookup.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** A binding that counts as `read` on some hosts, and what to type so that it says what is meant. */
export interface LimitedRecord {
  readonly record: HostBindingRecord;
  readonly text: string;
  readonly commands: string;
}

/** The bindings without an effect on hosts where an operation of these connectors needs an approval. */
export function limitedRecords(
  bindings: readonly HostBindingRecord[],
  connectors: readonly ConnectorRecord[],
): readonly LimitedRecord[] {
  const records = new Map(bindings.map((record) => [record.id, record]));
  const limited = findLimitedBindings(bindings.map(toHostBinding), connectors.map(toInstalled));
  return limited.flatMap(({ binding: { id, host }, hosts }) => {
    const record = records.get(id);
    if (record === undefined) return [];
    const where = hosts.length === 1 && hosts[0] === host ? 'there' : `on ${hosts.join(', ')}`;
    const text = `the binding of ${host} has no effect, so it only reads ${where}: operations of a connector need an approval`;
    const commands = `svc binding effect ${id} read, or write to let it do there what the connector leaves, unapproved`;
    return [{ record, text, commands }];
  });
}

/** Every installed connector with its spec. */
export async function connectorsWithSpecs(client: HttpClient): Promise<ConnectorRecord[]> {
  const records: ConnectorRecord[] = [];
  for (const { id } of await allConnectors(client)) {
    records.push(await client.call('GET', `/v1/connectors/${id}`, connectorRecord));
  }
  return records;
}

/** Says which bindings are limited to reading; at a terminal it offers to have each say so itself. */
export async function adviseOfLimits(
  { context, print }: Pick<Call, 'context' | 'print'>,
  client: HttpClient,
  limited: readonly LimitedRecord[],
): Promise<void> {
  for (const { record, text, commands } of limited) {
    print.warn(text);
    const isAsked = context.interactive && !print.json;
    if (isAsked && (await askYes(context, `Give the binding of ${record.host} the effect "read"?`))) {
      await changeEffect(client, record, 'read');
      print.note(`The binding of ${record.host} (${record.id}) has the effect read.`);
    } else {
      print.note(`Say what it may do: ${commands}`);
    }
  }
}

function toInstalled({ id, owner, spec, content_hash: contentHash, fqn }: ConnectorRecord): InstalledConnector {
  return { id, owner, spec: toConnectorSpec(spec), contentHash, credential: { owner, path: connectorVaultPath(fqn) } };
}
