import { and, eq, gt, lt, sql } from 'drizzle-orm';
import type { Database, Statement } from '../database.ts';
import { mcpClients } from '../tables.ts';

export type McpClientRow = typeof mcpClients.$inferSelect;

export async function findMcpClient(database: Database, id: string, nowSeconds: number): Promise<McpClientRow | null> {
  const rows = await database.read
    .select()
    .from(mcpClients)
    .where(and(eq(mcpClients.id, id), gt(mcpClients.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** Stores a client, or the newest copy of its document, and deletes expired ones. */
export function putMcpClient(database: Database, row: McpClientRow, nowSeconds: number): Statement[] {
  const { name, redirectUris, expiresAt } = row;
  return [
    database.read.delete(mcpClients).where(lt(mcpClients.expiresAt, nowSeconds)),
    database.read
      .insert(mcpClients)
      .values(row)
      .onConflictDoUpdate({ target: mcpClients.id, set: { name, redirectUris, expiresAt } }),
  ];
}

/** Keeps a registered client at least until then. */
export function keepMcpClient(database: Database, id: string, expiresAt: number): Statement {
  return database.read
    .update(mcpClients)
    .set({ expiresAt: sql`max(${mcpClients.expiresAt}, ${expiresAt})` })
    .where(and(eq(mcpClients.id, id), eq(mcpClients.kind, 'registered')));
}
