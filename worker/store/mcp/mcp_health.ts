import { and, desc, eq, inArray, isNull } from 'drizzle-orm';
import type { Database, Statement } from '../database.ts';
import { mcpHealth, sidecars } from '../tables.ts';

export type McpHealthRow = typeof mcpHealth.$inferSelect;

/** Stores a sidecar's report about servers, replacing its earlier one. */
export function noteMcpHealth(database: Database, rows: readonly McpHealthRow[]): Statement[] {
  return rows.map(({ serverId, sidecarId, ...said }) =>
    database.read
      .insert(mcpHealth)
      .values({ serverId, sidecarId, ...said })
      .onConflictDoUpdate({ target: [mcpHealth.serverId, mcpHealth.sidecarId], set: said }),
  );
}

/** The reports of a user's active sidecars about these servers, newest first. */
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
