import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { personalTokens } from './tables.ts';

export type PersonalTokenRow = typeof personalTokens.$inferSelect;

export function insertPersonalToken(database: Database, row: PersonalTokenRow): Statement {
  return database.read.insert(personalTokens).values(row);
}

export async function findPersonalToken(database: Database, id: string): Promise<PersonalTokenRow | null> {
  const rows = await database.read.select().from(personalTokens).where(eq(personalTokens.id, id));
  return rows[0] ?? null;
}

export async function findPersonalTokenByHash(database: Database, tokenHash: string): Promise<PersonalTokenRow | null> {
  const rows = await database.read.select().from(personalTokens).where(eq(personalTokens.tokenHash, tokenHash));
  return rows[0] ?? null;
}

/** A user's tokens, oldest first, including revoked ones. */
export async function listPersonalTokens(
  database: Database,
  page: { readonly userId: string; readonly after: string | null; readonly limit: number },
): Promise<PersonalTokenRow[]> {
  const after = page.after === null ? undefined : gt(personalTokens.id, page.after);
  return database.read
    .select()
    .from(personalTokens)
    .where(and(eq(personalTokens.userId, page.userId), after))
    .orderBy(asc(personalTokens.id))
    .limit(page.limit);
}

/** Revokes a token that is not revoked yet. */
export function revokePersonalToken(database: Database, id: string, revokedAt: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM personal_tokens WHERE id = ${id} AND revoked_at IS NULL)`),
    database.read.update(personalTokens).set({ revokedAt }).where(eq(personalTokens.id, id)),
  ];
}

export async function touchPersonalToken(database: Database, id: string, lastUsedAt: string): Promise<void> {
  await database.read.update(personalTokens).set({ lastUsedAt }).where(eq(personalTokens.id, id));
}
