import { z } from 'zod';
import { REGISTERED_PREFIX } from '../../shared/wire/mcp/mcp_clients.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import type { EnterpriseRow } from '../store/accounts.ts';
import type { Statement } from '../store/database.ts';
import { findMcpClient, keepMcpClient } from '../store/mcp/mcp_clients.ts';

const ids = z.array(z.string());

/** How long a registered client is kept that an enterprise allows, and nobody has connected yet. */
const KEPT_SECONDS = 90 * 24 * 3600;

/** The MCP clients that an enterprise's own OpenID provider may connect. Throws if the list is damaged. */
export function providerMcpClients({ providerMcpClients: text }: Pick<EnterpriseRow, 'providerMcpClients'>): string[] {
  return ids.parse(JSON.parse(text));
}

/** The first of these ids that no client has registered here; null if there is none. Documents are read when they are used. */
export async function findUnregistered(context: ServiceContext, clientIds: readonly string[]): Promise<string | null> {
  for (const id of clientIds.filter(isRegistered)) {
    if ((await findMcpClient(context.database, id, nowSeconds(context))) === null) return id;
  }
  return null;
}

/** Keeps registered clients that are allowed now: nobody may connect them for a while. */
export function keepAllowed(context: ServiceContext, clientIds: readonly string[]): Statement[] {
  const until = nowSeconds(context) + KEPT_SECONDS;
  return clientIds.filter(isRegistered).map((id) => keepMcpClient(context.database, id, until));
}

function isRegistered(id: string): boolean {
  return id.startsWith(REGISTERED_PREFIX);
}
