import type { ServiceContext } from '../../kernel/service_context.ts';
import { visibleOwners } from '../../kernel/caller.ts';
import { findMcpServer, type McpServerRow } from '../../store/mcp/mcp_servers.ts';
import { listReceived, type ShareUser } from './received.ts';

/** The shared MCP servers that a user's gateways and clients use. */
export async function listSharedServers(context: ServiceContext, user: ShareUser): Promise<readonly McpServerRow[]> {
  const received = await listReceived(context, user, { kind: 'mcp_server' });
  return received.flatMap(({ state, resource }) =>
    state === 'in_force' && resource.kind === 'mcp_server' ? [resource.row] : [],
  );
}

/** A shared MCP server of the user's policy. */
export async function findSharedServer(
  context: ServiceContext,
  user: ShareUser,
  id: string,
): Promise<McpServerRow | null> {
  return (await listSharedServers(context, user)).find((row) => row.id === id) ?? null;
}

/** A server that a user may use: its own, the enterprise's or a shared one. */
export async function findUsableServer(
  context: ServiceContext,
  user: ShareUser,
  id: string,
): Promise<McpServerRow | null> {
  const own = await findMcpServer(context.database, visibleOwners(user), id);
  return own ?? findSharedServer(context, user, id);
}
