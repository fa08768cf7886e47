import { assignServerNames } from '../../../../shared/mcp/assign_server_names.ts';
import type { McpServer } from '../../../../shared/model/mcp_server.ts';
import type { McpServerRow } from '../../../store/mcp/mcp_servers.ts';
import { type Caller, visibleOwners } from '../../../kernel/caller.ts';
import type { ServiceContext } from '../../../kernel/service_context.ts';
import { applyRules } from '../apply_rules.ts';
import { listSharedServers } from '../../sharing/shared_servers.ts';
import { listAllMcpServers } from '../mcp_servers.ts';

/** A remote server that the control plane serves to a person's clients. */
export interface ServedServer {
  readonly row: McpServerRow;
  readonly server: McpServer;
  /** The prefix of its tools. */
  readonly name: string;
  /** A colleague's. Whoever calls it cannot mend its credentials, and is told nothing of them. */
  readonly isShared: boolean;
}

/**
 * The caller's enabled remote servers that the rules of its enterprise allow. A local one needs a machine to run on. One with the transport `sse` needs a
 * connection that stays open, which a control plane without sessions does not hold.
 */
export async function listServedServers(context: ServiceContext, caller: Caller): Promise<readonly ServedServer[]> {
  const own = await listAllMcpServers(context, visibleOwners(caller));
  const shared = await listSharedServers(context, caller);
  const rows = [...own, ...shared];
  const ruled = await applyRules(context, rows);
  const all = rows.flatMap((row) => {
    const known = ruled.get(row.id);
    return known === undefined ? [] : [{ row, isShared: shared.includes(row), server: known.server }];
  });
  // Local servers count, so that a server has the same name here and at the gateway of a machine.
  const names = assignServerNames(all.map(({ isShared, server }) => (isShared ? asEnterprises(server) : server)));
  return all
    .filter(({ server }) => server.enabled && server.mode === 'remote' && server.transport === 'streamable-http')
    .map((each) => ({ ...each, name: names.get(each.server.id) ?? each.server.name }));
}

/** What a colleague shares takes no name of the caller's own. */
function asEnterprises(server: McpServer): McpServer {
  return { ...server, owner: 'enterprise' };
}
