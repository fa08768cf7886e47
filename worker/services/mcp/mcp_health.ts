import type { McpHealthReport } from '../../../shared/wire/mcp/mcp_servers.ts';
import { noteMcpHealth } from '../../store/mcp/mcp_health.ts';
import { findKnownMcpServers } from '../../store/mcp/mcp_servers.ts';
import { visibleOwners } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listSharedServers } from '../sharing/shared_servers.ts';
import type { SidecarCaller } from '../sidecars/sidecar_calls.ts';

/** Stores a sidecar's report about the servers that it may see. Other and deleted servers are ignored. */
export async function noteHealth(
  context: ServiceContext,
  caller: SidecarCaller,
  { servers }: McpHealthReport,
): Promise<void> {
  const ids = servers.map(({ id }) => id);
  const own = await findKnownMcpServers(context.database, visibleOwners(caller), ids);
  const shared = own.size === new Set(ids).size ? [] : await listSharedServers(context, caller);
  const known = new Set([...own, ...shared.map(({ id }) => id)]);
  const now = context.clock.now();
  const rows = servers
    .filter(({ id }) => known.has(id))
    .map(({ id, state, last_error: lastError, checked_at: checkedAt, refused_hosts: hosts = [] }) => ({
      serverId: id,
      sidecarId: caller.sidecarId,
      state,
      lastError,
      // A report from a clock that is ahead must not outlive later ones.
      checkedAt: new Date(Math.min(now, Date.parse(checkedAt))).toISOString(),
      refusedHosts: JSON.stringify(hosts),
    }));
  if (rows.length === 0) return;
  await context.database.write(noteMcpHealth(context.database, rows));
}
