import { and, asc, count, eq, gt, isNull, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { joinTokens, serviceAccounts, sidecars, users } from './tables.ts';

/** A service account with the user that it is. */
export interface ServiceAccountRow {
  readonly account: typeof serviceAccounts.$inferSelect;
  readonly user: typeof users.$inferSelect;
}

/** A service account that was not removed, of any enterprise. */
export async function findServiceAccount(database: Database, id: string): Promise<ServiceAccountRow | null> {
  const rows = await selectAccounts(database).where(and(eq(serviceAccounts.userId, id), isNull(users.leftAt)));
  return rows[0] ?? null;
}

export async function listServiceAccounts(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<ServiceAccountRow[]> {
  const after = page.after === null ? undefined : gt(serviceAccounts.userId, page.after);
  return selectAccounts(database)
    .where(and(eq(serviceAccounts.enterpriseId, page.enterpriseId), isNull(users.leftAt), after))
    .orderBy(asc(serviceAccounts.userId))
    .limit(page.limit);
}

function selectAccounts({ read }: Database) {
  return read
    .select({ account: serviceAccounts, user: users })
    .from(serviceAccounts)
    .innerJoin(users, eq(users.id, serviceAccounts.userId));
}

/** How many sidecars of each of an enterprise's service accounts have not ended, by user id. */
export async function countJoined(
  { read }: Database,
  enterpriseId: string,
  now: string,
): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .select({ userId: sidecars.userId, n: count() })
    .from(sidecars)
    .innerJoin(serviceAccounts, eq(serviceAccounts.userId, sidecars.userId))
    .where(and(eq(sidecars.enterpriseId, enterpriseId), isNull(sidecars.revokedAt), gt(sidecars.expiresAt, now)))
    .groupBy(sidecars.userId);
  return new Map(rows.map(({ userId, n }) => [userId, n]));
}

export function insertServiceAccount({ read }: Database, row: typeof serviceAccounts.$inferInsert): Statement {
  return read.insert(serviceAccounts).values(row);
}

/** What may change about a service account. */
export type ServiceAccountUpdate = Pick<
  typeof serviceAccounts.$inferSelect,
  'issuer' | 'audience' | 'claims' | 'reach' | 'minutes' | 'keys'
>;

export function updateServiceAccount(
  { read }: Database,
  id: string,
  {
    policy,
    user,
  }: {
    readonly policy: ServiceAccountUpdate;
    readonly user: { readonly displayName: string; readonly suspendedAt: string | null };
  },
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM users WHERE id = ${id} AND left_at IS NULL)`),
    read.update(serviceAccounts).set(policy).where(eq(serviceAccounts.userId, id)),
    read.update(users).set(user).where(eq(users.id, id)),
  ];
}

/** Whether a token was used before. */
export async function isJoinTokenUsed({ read }: Database, tokenHash: string): Promise<boolean> {
  return (await read.select().from(joinTokens).where(eq(joinTokens.tokenHash, tokenHash))).length > 0;
}

/**
 * Uses up a token, and notes the join; a conflict if the token was used before, or if the service account was changed,
 * suspended or removed since it was read.
 */
export function takeJoinToken(
  database: Database,
  { account, user }: ServiceAccountRow,
  token: { readonly tokenHash: string; readonly expiresAt: number },
  now: { readonly seconds: number; readonly text: string },
): Statement[] {
  const { userId } = account;
  const isSame = sql`claims = ${account.claims} AND issuer = ${account.issuer} AND audience = ${account.audience}
    AND reach = ${account.reach} AND minutes = ${account.minutes} AND keys IS ${account.keys}`;
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${userId} AND ${isSame})`),
    ...guard(sql`EXISTS (SELECT 1 FROM users WHERE id = ${user.id} AND suspended_at IS NULL AND left_at IS NULL)`),
    ...insertExpiring(database, joinTokens, token, now.seconds),
    database.read.update(serviceAccounts).set({ lastJoinedAt: now.text }).where(eq(serviceAccounts.userId, userId)),
  ];
}
