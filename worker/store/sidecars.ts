import { and, asc, count, eq, gt, inArray, isNull, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { enterprises, sidecarCalls, sidecars, users } from './tables.ts';

export type SidecarRow = typeof sidecars.$inferSelect;

export async function findSidecar(database: Database, id: string): Promise<SidecarRow | null> {
  const rows = await database.read.select().from(sidecars).where(eq(sidecars.id, id));
  return rows[0] ?? null;
}

/** Whether a sidecar still is one, and the version of its newest snapshot: see `policyVersion` in accounts.ts. */
export interface SidecarStanding extends Pick<SidecarRow, 'revokedAt' | 'expiresAt'> {
  readonly policyVersion: number;
}

/** Ids in one statement. */
const MOST_IDS = 5_000;

/** The standings of those of these sidecars that there are, by id. */
export async function readStandings(
  database: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, SidecarStanding>> {
  const found = new Map<string, SidecarStanding>();
  for (let start = 0; start < ids.length; start += MOST_IDS) {
    const wanted = JSON.stringify(ids.slice(start, start + MOST_IDS));
    const rows = await database.read
      .select({
        id: sidecars.id,
        revokedAt: sidecars.revokedAt,
        expiresAt: sidecars.expiresAt,
        policyVersion: sql<number>`${users.policyVersion} + ${enterprises.policyVersion}`,
      })
      .from(sidecars)
      .innerJoin(users, eq(users.id, sidecars.userId))
      .innerJoin(enterprises, eq(enterprises.id, users.enterpriseId))
      .where(inArray(sidecars.id, sql`(SELECT value FROM json_each(${wanted}))`));
    for (const { id, ...standing } of rows) found.set(id, standing);
  }
  return found;
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

/** How many sidecars of an enterprise are enrolled and have not ended, how many of them were seen since a time, and when the last one was. */
export async function countSeenSidecars(
  { read }: Database,
  enterpriseId: string,
  { now, since }: { readonly now: string; readonly since: string },
): Promise<{ readonly enrolled: number; readonly seen: number; readonly lastSeenAt: string | null }> {
  const rows = await read
    .select({
      enrolled: count(),
      seen: sql<number>`count(CASE WHEN ${sidecars.lastSeenAt} >= ${since} THEN 1 END)`,
      lastSeenAt: sql<string | null>`max(${sidecars.lastSeenAt})`,
    })
    .from(sidecars)
    .where(
      and(
        eq(sidecars.enterpriseId, enterpriseId),
        isNull(sidecars.revokedAt),
        or(isNull(sidecars.expiresAt), gt(sidecars.expiresAt, now)),
      ),
    );
  return rows[0] ?? { enrolled: 0, seen: 0, lastSeenAt: null };
}
