import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { latestBy } from '../../store/audit/audit_events.ts';

const USES = ['mcp.tool.called', 'mcp.server.started'] as const;

/** When a client last called a tool of a server, or a machine last started it; null if that is not among the latest events. */
export async function describeServerUse(
  context: ServiceContext,
  { enterpriseId }: Caller,
): Promise<(server: Pick<McpServerRecord, 'id'>) => string | null> {
  const uses = await Promise.all(
    USES.map((type) => latestBy(context.database, enterpriseId, { type, key: 'svc.mcp.server_id' })),
  );
  return ({ id }) => uses.map((times) => times.get(id) ?? null).reduce((a, b) => ((b ?? '') > (a ?? '') ? b : a), null);
}
