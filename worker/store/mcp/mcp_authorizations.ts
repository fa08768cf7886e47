import { and, eq, inArray } from 'drizzle-orm';
import { mcpVaultPath, MCP_OAUTH_NAME } from '../../../shared/model/mcp_server.ts';
import type { ConnectorCredentialRow } from '../connectors.ts';
import type { Database, Statement } from '../database.ts';
import type { McpServerRow } from './mcp_servers.ts';
import { connectorCredentials, mcpServers, oauthFlows, secrets } from '../tables.ts';

/**
 * The oauth2 credential of a remote MCP server is a row of `connector_credentials` under the server's id, so that the
 * same code refreshes both kinds.
 */
interface McpAuthorization {
  readonly server: McpServerRow;
  readonly credential: ConnectorCredentialRow | null;
}

/** A server of any owner with its authorisation, for callers that have checked access before. */
export async function findMcpAuthorization(database: Database, serverId: string): Promise<McpAuthorization | null> {
  const rows = await database.read
    .select({ server: mcpServers, credential: connectorCredentials })
    .from(mcpServers)
    .leftJoin(connectorCredentials, eq(connectorCredentials.connectorId, mcpServers.id))
    .where(eq(mcpServers.id, serverId));
  return rows[0] ?? null;
}

/** The authorisations of these servers. */
export async function mcpAuthorizationsOf(
  database: Database,
  serverIds: readonly string[],
): Promise<ConnectorCredentialRow[]> {
  if (serverIds.length === 0) return [];
  return database.read
    .select()
    .from(connectorCredentials)
    .where(inArray(connectorCredentials.connectorId, [...serverIds]));
}

/** Stores an authorisation and replaces the previous one; flows that started with that one cannot continue. */
export function putMcpAuthorization(database: Database, row: ConnectorCredentialRow): Statement[] {
  const { connectorId: _id, ...content } = row;
  return [
    database.read
      .insert(connectorCredentials)
      .values(row)
      .onConflictDoUpdate({ target: connectorCredentials.connectorId, set: content }),
  ];
}

/** Replaces the client of a credential, if it still has the one before. Its tokens stay. */
export function setMcpClient(
  database: Database,
  serverId: string,
  { before, client }: { readonly before: string; readonly client: string },
): Statement[] {
  const isStill = and(eq(connectorCredentials.connectorId, serverId), eq(connectorCredentials.client, before));
  return [database.read.update(connectorCredentials).set({ client }).where(isStill)];
}

/** Deletes a server's authorisation with its tokens and its flows in progress. */
export function deleteMcpAuthorization(
  database: Database,
  { id, ownerId }: Pick<McpServerRow, 'id' | 'ownerId'>,
): Statement[] {
  const path = mcpVaultPath(id, MCP_OAUTH_NAME);
  return [
    database.read.delete(connectorCredentials).where(eq(connectorCredentials.connectorId, id)),
    database.read.delete(oauthFlows).where(eq(oauthFlows.connectorId, id)),
    database.read.delete(secrets).where(and(eq(secrets.ownerId, ownerId), eq(secrets.path, path))),
  ];
}
