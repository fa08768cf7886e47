import type { FieldProblem } from '../../../shared/model/problem.ts';
import { referencesOf } from '../../../shared/mcp/references.ts';
import {
  admitShared,
  admitSharedConnectors,
  admitSharedServers,
  bindingShareProblem,
  connectorShareProblem,
  serverShareProblem,
  type ShareStanding,
  standingOf,
} from '../../../shared/sharing/share_rules.ts';
import { type Caller, ownerName, visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { type ConnectorSummaryRow, listConnectorPlaces } from '../../store/connectors.ts';
import { findHostBindingsOn, type HostBindingRow } from '../../store/host_bindings.ts';
import { listMcpServerNames, type McpServerRow } from '../../store/mcp/mcp_servers.ts';
import { listReceivedShares, type ReceivedShare, type ShareFilter } from '../../store/people/shares.ts';
import { toRecord } from '../bindings/host_bindings.ts';
import { configurationOf, serverOf } from '../mcp/mcp_configuration.ts';

/** A user of an enterprise. `ownOnly`: it gets nothing that is not its own. */
export type ShareUser = Pick<Caller, 'userId' | 'enterpriseId'> & { readonly ownOnly?: boolean };

/** What is shared, by its kind. */
export type SharedResource =
  | { readonly kind: 'host_binding'; readonly row: HostBindingRow }
  | { readonly kind: 'connector'; readonly row: ConnectorSummaryRow }
  | { readonly kind: 'mcp_server'; readonly row: McpServerRow };

/** A share with what it is to its receiver. */
export type Received = ReceivedShare & {
  readonly resource: SharedResource;
  readonly state: ShareStanding | 'overridden';
};

/** What a row of shares is about. */
export function resourceOf({ binding, connector, server }: Joined): SharedResource {
  if (binding !== null) return { kind: 'host_binding', row: binding };
  if (connector !== null) return { kind: 'connector', row: connector };
  if (server !== null) return { kind: 'mcp_server', row: server };
  throw new Error('a share was read without what it shares');
}

type Joined = Pick<ReceivedShare, 'binding' | 'connector' | 'server'>;

/** Why something cannot be shared now; null if it can. */
export function shareProblem(resource: SharedResource): FieldProblem | null {
  if (resource.kind === 'host_binding') return bindingShareProblem(toRecord(resource.row));
  const owner = ownerName(resource.row.ownerId);
  if (resource.kind === 'connector') {
    const { fqn, activatedAt } = resource.row;
    return connectorShareProblem({ owner, fqn, isActive: activatedAt !== null });
  }
  const credentials = referencesOf(serverOf(resource.row)).map((path) => path.split('/').at(-1) ?? path);
  return serverShareProblem({ owner, mode: configurationOf(resource.row).mode, credentials });
}

/** What colleagues share with a user, oldest first. */
export async function listReceived(
  context: ServiceContext,
  user: ShareUser,
  filter: Pick<ShareFilter, 'kind' | 'hosts'> = {},
): Promise<readonly Received[]> {
  if (user.ownOnly === true) return [];
  const rows = await listReceivedShares(context.database, user, filter);
  if (rows.length === 0) return [];
  const held = rows.map((row) => {
    const resource = resourceOf(row);
    const { sharer, acceptedRevision } = row;
    const about = { sharer, acceptedRevision, problem: shareProblem(resource), revision: resource.row.updatedAt };
    return { ...row, resource, standing: standingOf(about) };
  });
  const used = await findUsed(
    context,
    user,
    held.filter(({ standing }) => standing === 'in_force'),
  );
  return held.map(({ standing, ...row }) => ({
    ...row,
    state: standing === 'in_force' && !used.has(row.share.id) ? 'overridden' : standing,
  }));
}

type InForce = Omit<Received, 'state'>;

/** The ids of the shares whose thing nothing of the user or the enterprise comes before. */
async function findUsed(
  context: ServiceContext,
  user: ShareUser,
  shares: readonly InForce[],
): Promise<ReadonlySet<string>> {
  const used = await Promise.all([
    usedBindings(context, user, shares),
    usedConnectors(context, user, shares),
    usedServers(context, user, shares),
  ]);
  return new Set(used.flat());
}

async function usedBindings({ database }: ServiceContext, user: ShareUser, shares: readonly InForce[]) {
  const bindings = shares.flatMap(({ share, resource }) =>
    resource.kind === 'host_binding' ? [{ ...resource.row, share: share.id }] : [],
  );
  if (bindings.length === 0) return [];
  const patterns = [...new Set(bindings.map(({ host }) => host))];
  const own = await findHostBindingsOn(database, visibleOwners(user), patterns);
  const admitted = admitShared(
    own.map((row) => ({ ...row, owner: ownerName(row.ownerId) })),
    bindings,
  );
  return admitted.map(({ share }) => share);
}

async function usedConnectors({ database }: ServiceContext, user: ShareUser, shares: readonly InForce[]) {
  const connectors = shares.flatMap(({ share, resource }) =>
    resource.kind === 'connector' ? [{ ...placeOf(resource.row), share: share.id }] : [],
  );
  if (connectors.length === 0) return [];
  const own = await listConnectorPlaces(database, visibleOwners(user));
  return admitSharedConnectors(own.map(placeOf), connectors).map(({ share }) => share);
}

function placeOf({ fqn, hosts, activatedAt }: Pick<ConnectorSummaryRow, 'fqn' | 'hosts' | 'activatedAt'>) {
  const named: readonly string[] = JSON.parse(hosts);
  return { fqn, hosts: named, isActive: activatedAt !== null };
}

async function usedServers({ database }: ServiceContext, user: ShareUser, shares: readonly InForce[]) {
  const servers = shares.flatMap(({ share, resource }) =>
    resource.kind === 'mcp_server' ? [{ name: resource.row.name, share: share.id }] : [],
  );
  if (servers.length === 0) return [];
  const own = await listMcpServerNames(database, visibleOwners(user));
  return admitSharedServers(own, servers).map(({ share }) => share);
}
