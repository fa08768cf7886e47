import { and, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { refreshTokens, tokenFamilies } from './tables.ts';

export type TokenFamilyRow = typeof tokenFamilies.$inferSelect;
export type RefreshTokenRow = typeof refreshTokens.$inferSelect;

/** Stores a program's sign-in with its first refresh token, and deletes expired ones. */
export function insertFamily(
  database: Database,
  family: TokenFamilyRow,
  first: RefreshTokenRow,
  nowSeconds: number,
): Statement[] {
  return [
    ...insertExpiring(database, tokenFamilies, family, nowSeconds),
    ...insertExpiring(database, refreshTokens, first, nowSeconds),
  ];
}

/** A family that is neither revoked nor expired. */
export async function findLiveFamily(
  database: Database,
  id: string,
  nowSeconds: number,
): Promise<TokenFamilyRow | null> {
  const live = and(isNull(tokenFamilies.revokedAt), gt(tokenFamilies.expiresAt, nowSeconds));
  const rows = await database.read
    .select()
    .from(tokenFamilies)
    .where(and(eq(tokenFamilies.id, id), live));
  return rows[0] ?? null;
}

/** A refresh token with its family, including used and revoked ones. */
export async function findRefreshToken(
  database: Database,
  tokenHash: string,
): Promise<{ readonly token: RefreshTokenRow; readonly family: TokenFamilyRow } | null> {
  const rows = await database.read
    .select({ token: refreshTokens, family: tokenFamilies })
    .from(refreshTokens)
    .innerJoin(tokenFamilies, eq(tokenFamilies.id, refreshTokens.familyId))
    .where(eq(refreshTokens.tokenHash, tokenHash));
  return rows[0] ?? null;
}

/** Uses up a token and stores the next one; a conflict if it was used meanwhile or its family was revoked. */
export function rotateRefreshToken(
  database: Database,
  tokenHash: string,
  next: RefreshTokenRow,
  now: string,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM refresh_tokens t JOIN token_families f ON f.id = t.family_id
      WHERE t.token_hash = ${tokenHash} AND t.used_at IS NULL AND f.revoked_at IS NULL)`),
    database.read.update(refreshTokens).set({ usedAt: now }).where(eq(refreshTokens.tokenHash, tokenHash)),
    database.read.insert(refreshTokens).values(next),
    database.read.update(tokenFamilies).set({ lastUsedAt: now }).where(eq(tokenFamilies.id, next.familyId)),
  ];
}

/** Ends a family: its refresh and access tokens are invalid from now on. */
export function revokeFamily(database: Database, id: string, revokedAt: string): Statement {
  return database.read
    .update(tokenFamilies)
    .set({ revokedAt })
    .where(and(eq(tokenFamilies.id, id), isNull(tokenFamilies.revokedAt)));
}

/** Ends all families of a user. */
export function revokeFamiliesOf(database: Database, userIds: SQL, revokedAt: string): Statement {
  return database.read
    .update(tokenFamilies)
    .set({ revokedAt })
    .where(and(inArray(tokenFamilies.userId, userIds), isNull(tokenFamilies.revokedAt)));
}
