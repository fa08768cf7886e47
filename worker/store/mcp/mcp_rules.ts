import { and, asc, eq, gt, inArray, sql } from 'drizzle-orm';
import type { Database, Statement } from '../database.ts';
import { enterprises, mcpDerivations, mcpRules, mcpServers, users } from '../tables.ts';
import type { McpServerRow } from './mcp_servers.ts';

/** The rules of an enterprise as JSON; null if it has none. */
export async function findMcpRules(database: Database, enterpriseId: string): Promise<string | null> {
  const rows = await database.read.select().from(mcpRules).where(eq(mcpRules.enterpriseId, enterpriseId));
  return rows[0]?.rules ?? null;
}

/** Replaces the rules; every member's policy has a new version then. */
export function putMcpRules(database: Database, row: typeof mcpRules.$inferSelect): Statement[] {
  const { enterpriseId } = row;
  const version = sql`${enterprises.policyVersion} + 1`;
  return [
    database.read.delete(mcpRules).where(eq(mcpRules.enterpriseId, enterpriseId)),
    database.read.insert(mcpRules).values(row),
    database.read.update(enterprises).set({ policyVersion: version }).where(eq(enterprises.id, enterpriseId)),
  ];
}

/** Notes that the control plane derived this configuration of a server from its registry entry. */
export function noteMcpDerivation(database: Database, serverId: string, hash: string): Statement {
  return database.read.insert(mcpDerivations).values({ serverId, hash }).onConflictDoNothing();
}

/** The noted hashes of these servers, as `id/hash`. */
export async function listMcpDerivations(
  database: Database,
  serverIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (serverIds.length === 0) return new Set();
  const rows = await database.read
    .select()
    .from(mcpDerivations)
    .where(inArray(mcpDerivations.serverId, [...serverIds]));
  return new Set(rows.map(({ serverId, hash }) => `${serverId}/${hash}`));
}

/** A server of an enterprise or of one of its members, with that member's address. */
export interface OwnedMcpServer {
  readonly row: McpServerRow;
  readonly email: string | null;
}

/** Every server of an enterprise and of its members, by id, after one. */
export async function listMcpServersOfEnterprise(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<OwnedMcpServer[]> {
  const after = page.after === null ? undefined : gt(mcpServers.id, page.after);
  return database.read
    .select({ row: mcpServers, email: users.email })
    .from(mcpServers)
    .leftJoin(users, eq(users.id, mcpServers.ownerId))
    .where(and(eq(mcpServers.enterpriseId, page.enterpriseId), after))
    .orderBy(asc(mcpServers.id))
    .limit(page.limit);
}
