import { connectorVaultPath } from '../../../shared/model/connector.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { visibleOwners } from '../../kernel/caller.ts';
import { type ConnectorRow, findConnectorById, type WithCredential } from '../../store/connectors.ts';
import { listAllConnectors } from '../connectors/all_connectors.ts';
import type { UsableConnector } from '../connectors/connector_access.ts';
import { listReceived, type ShareUser } from './received.ts';

/**
 * The shared connectors that a user's requests use, each as one of the enterprise's with a credential at its own place: the
 * owner's path is private, and there is no connector of the enterprise with that name. `host` limits it to those of a host.
 */
async function listSharedConnectors(
  context: ServiceContext,
  user: ShareUser,
  host?: string,
): Promise<readonly UsableConnector[]> {
  const received = await listReceived(context, user, { kind: 'connector' });
  const used = received.flatMap(({ state, resource }) =>
    state === 'in_force' && resource.kind === 'connector' && isOf(resource.row, host) ? [resource.row] : [],
  );
  const found: UsableConnector[] = [];
  // One at a time: a spec has up to a megabyte, and a database reply is limited in size.
  for (const { id, updatedAt } of used) {
    const row = await findConnectorById(context.database, id);
    // Its owner may have changed it since: the receiver accepted what it was.
    if (row?.connector.updatedAt === updatedAt) found.push(asShared(row));
  }
  return found;
}

function isOf({ hosts }: Pick<ConnectorRow, 'hosts'>, host: string | undefined): boolean {
  const named: readonly string[] = JSON.parse(hosts);
  return host === undefined || named.includes(host);
}

function asShared(row: WithCredential<ConnectorRow>): UsableConnector {
  const { connector, credential } = row;
  const ownerId = connector.enterpriseId;
  return {
    connector: { ...connector, ownerId },
    credential: credential && { ...credential, ownerId, path: connectorVaultPath(connector.fqn) },
    sharedFrom: row,
  };
}

/** The connectors that a user's requests use, optionally for one host: its own, the enterprise's and shared ones. */
export async function listUsableConnectors(
  context: ServiceContext,
  user: ShareUser,
  host?: string,
): Promise<readonly UsableConnector[]> {
  const own = await listAllConnectors(context, visibleOwners(user), host);
  return [...own, ...(await listSharedConnectors(context, user, host))];
}

/** A shared connector of the user's policy. */
export async function findSharedConnector(
  context: ServiceContext,
  user: ShareUser,
  named: Partial<Pick<ConnectorRow, 'id' | 'fqn'>>,
): Promise<UsableConnector | null> {
  const shared = await listSharedConnectors(context, user);
  return shared.find(({ connector: { id, fqn } }) => id === named.id || fqn === named.fqn) ?? null;
}
