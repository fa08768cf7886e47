import { and, asc, count, eq, gt, isNull, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { scimTokens } from '../tables.ts';

export type ScimTokenRow = typeof scimTokens.$inferSelect;

export function insertScimToken(database: Database, row: ScimTokenRow): Statement {
  return database.read.insert(scimTokens).values(row);
}

export async function findScimTokenByHash(database: Database, tokenHash: string): Promise<ScimTokenRow | null> {
  const rows = await database.read.select().from(scimTokens).where(eq(scimTokens.tokenHash, tokenHash));
  return rows[0] ?? null;
}

export async function findScimToken(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<ScimTokenRow | null> {
  const isOne = and(eq(scimTokens.id, id), eq(scimTokens.enterpriseId, enterpriseId));
  return (await database.read.select().from(scimTokens).where(isOne))[0] ?? null;
}

/** An enterprise's tokens, oldest first, including revoked ones. */
export async function listScimTokens(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<ScimTokenRow[]> {
  const after = page.after === null ? undefined : gt(scimTokens.id, page.after);
  return database.read
    .select()
    .from(scimTokens)
    .where(and(eq(scimTokens.enterpriseId, page.enterpriseId), after))
    .orderBy(asc(scimTokens.id))
    .limit(page.limit);
}

/** The number of an enterprise's tokens that work. */
export async function countLiveScimTokens(database: Database, enterpriseId: string, now: string): Promise<number> {
  const live = and(
    eq(scimTokens.enterpriseId, enterpriseId),
    isNull(scimTokens.revokedAt),
    gt(scimTokens.expiresAt, now),
  );
  return (await database.read.select({ n: count() }).from(scimTokens).where(live))[0]?.n ?? 0;
}

/** Revokes a token that is not revoked yet. */
export function revokeScimToken(database: Database, id: string, revokedAt: string): Statement[] {
  return [...whileScimToken(id), database.read.update(scimTokens).set({ revokedAt }).where(eq(scimTokens.id, id))];
}

export async function touchScimToken(database: Database, id: string, lastUsedAt: string): Promise<void> {
  await database.read.update(scimTokens).set({ lastUsedAt }).where(eq(scimTokens.id, id));
}

/** The condition that a token is not revoked: a call may have been authenticated before. */
export function whileScimToken(id: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM scim_tokens WHERE id = ${id} AND revoked_at IS NULL)`);
}
