import { and, asc, count, eq, gt, isNull, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { sidecarCalls, sidecars } from './tables.ts';

export type SidecarRow = typeof sidecars.$inferSelect;

export async function findSidecar(database: Database, id: string): Promise<SidecarRow | null> {
  const rows = await database.read.select().from(sidecars).where(eq(sidecars.id, id));
  return rows[0] ?? null;
}

export async function listSidecars(
  database: Database,
  page: { readonly userId: string; readonly after: string | null; readonly limit: number },
): Promise<SidecarRow[]> {
  return database.read
    .select()
    .from(sidecars)
    .where(and(eq(sidecars.userId, page.userId), page.after === null ? undefined : gt(sidecars.id, page.after)))
    .orderBy(asc(sidecars.id))
    .limit(page.limit);
}

export function insertSidecar(database: Database, row: SidecarRow): Statement[] {
  return [database.read.insert(sidecars).values(row)];
}

/** Revokes a sidecar that is not revoked yet. */
export function revokeSidecar(database: Database, id: string, revokedAt: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM sidecars WHERE id = ${id} AND revoked_at IS NULL)`),
    database.read.update(sidecars).set({ revokedAt }).where(eq(sidecars.id, id)),
  ];
}

export async function touchSidecar(database: Database, id: string, lastSeenAt: string): Promise<void> {
  await database.read
    .update(sidecars)
    .set({ lastSeenAt })
    .where(and(eq(sidecars.id, id), isNull(sidecars.revokedAt)));
}

/** Stores a call's one-time id; false if it was used before. Deletes expired ids. */
export async function takeCallId(
  database: Database,
  call: { readonly sidecarId: string; readonly jti: string; readonly expiresAt: number },
  nowSeconds: number,
): Promise<boolean> {
  const taken = await database.write(insertExpiring(database, sidecarCalls, call, nowSeconds));
  return taken.ok;
}

export async function countLiveSidecars(database: Database, userId: string): Promise<number> {
  const rows = await database.read
    .select({ n: count() })
    .from(sidecars)
    .where(and(eq(sidecars.userId, userId), isNull(sidecars.revokedAt)));
  return rows[0]?.n ?? 0;
}
