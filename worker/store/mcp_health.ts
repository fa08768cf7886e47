import { and, desc, eq, inArray, isNull } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { mcpHealth, sidecars } from './tables.ts';

export type McpHealthRow = typeof mcpHealth.$inferSelect;

/** Notes what a sidecar says of servers, in place of what it said before. */
export function noteMcpHealth(database: Database, rows: readonly McpHealthRow[]): Statement[] {
  return rows.map(({ serverId, sidecarId, ...said }) =>
    database.read
      .insert(mcpHealth)
      .values({ serverId, sidecarId, ...said })
      .onConflictDoUpdate({ target: [mcpHealth.serverId, mcpHealth.sidecarId], set: said }),
  );
}

/** What the sidecars of a user that are not revoked said of these servers, newest first. */
export async function mcpHealthOf(
  database: Database,
  userId: string,
  serverIds: readonly string[],
): Promise<McpHealthRow[]> {
  if (serverIds.length === 0) return [];
  const rows = await database.read
    .select({ health: mcpHealth })
    .from(mcpHealth)
    .innerJoin(sidecars, eq(sidecars.id, mcpHealth.sidecarId))
    .where(and(inArray(mcpHealth.serverId, [...serverIds]), eq(sidecars.userId, userId), isNull(sidecars.revokedAt)))
    .orderBy(desc(mcpHealth.checkedAt));
  return rows.map(({ health }) => health);
}
