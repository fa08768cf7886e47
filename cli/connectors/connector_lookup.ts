import {
  connectorRecord,
  connectorsPage,
  type ConnectorRecord,
  type ConnectorSummary,
} from '../../shared/wire/connectors/connectors.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/** Lists the caller's connectors. */
export function listAllConnectors(client: HttpClient, owner?: string): Promise<ConnectorSummary[]> {
  return fetchAllPages(client, '/v1/connectors', connectorsPage, { owner });
}

/**
 * Finds an installed connector by id, by `publisher/name`, or by a name that only one publisher uses. `owner` chooses if both
 * the enterprise and the caller have it.
 */
export async function findConnector(client: HttpClient, wanted: string, owner?: string): Promise<ConnectorSummary> {
  const all = await listAllConnectors(client);
  const named = all.filter(({ id, fqn }) => id === wanted || fqn === wanted);
  const alike = named.length > 0 ? named : all.filter(({ fqn }) => fqn.endsWith(`/${wanted}`));
  const found = alike.filter((connector) => owner === undefined || connector.owner === owner);
  return pickNamed(wanted, all, found, {
    nameOf: ({ fqn }) => fqn,
    line: ({ id, fqn, owner: whose }) => `${id}  ${fqn}  ${whose}`,
    none: `no connector ${JSON.stringify(wanted)} is installed`,
    hint: '`svc connector list` shows them; `svc connector catalog` shows what can be installed.',
    plural: 'connectors',
  });
}

/** A connector with its spec. */
export async function readConnector(client: HttpClient, wanted: string, owner?: string): Promise<ConnectorRecord> {
  const { id } = await findConnector(client, wanted, owner);
  return client.call('GET', `/v1/connectors/${id}`, connectorRecord);
}
