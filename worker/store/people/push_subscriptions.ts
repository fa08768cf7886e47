import { and, asc, desc, eq, gt, isNull, lte, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { browserSessions, pushKeys, pushSubscriptions, users } from '../tables.ts';

export type PushKeyRow = typeof pushKeys.$inferSelect;
export type PushSubscriptionRow = typeof pushSubscriptions.$inferSelect;

/** The key that identifies this control plane to push services; null if there is none yet. */
export async function findPushKey(database: Database): Promise<PushKeyRow | null> {
  const rows = await database.read.select().from(pushKeys).limit(1);
  return rows[0] ?? null;
}

/** Stores the key; a conflict if another program was first. */
export function insertPushKey(database: Database, row: PushKeyRow): Statement[] {
  return [...guard(sql`NOT EXISTS (SELECT 1 FROM push_keys)`), database.read.insert(pushKeys).values(row)];
}

/** Stores how a browser is reached, in place of what its session had, and of what reached the same browser for another user. */
export function insertSubscription(
  database: Database,
  row: Omit<PushSubscriptionRow, 'quietUntil' | 'problem'>,
): Statement[] {
  const { sessionId, endpointHash } = pushSubscriptions;
  const replaced = or(eq(sessionId, row.sessionId), eq(endpointHash, row.endpointHash));
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM browser_sessions WHERE id = ${row.sessionId} AND user_id = ${row.userId})`),
    database.read.delete(pushSubscriptions).where(replaced),
    database.read.insert(pushSubscriptions).values(row),
  ];
}

/** A subscription with the browser that it is of. */
export interface BrowserSubscription {
  readonly subscription: PushSubscriptionRow;
  readonly client: string;
  readonly tokenHash: string;
}

/** The subscriptions of a user's signed-in browsers, newest first. */
export function listSubscriptions(
  database: Database,
  { userId, nowSeconds }: { readonly userId: string; readonly nowSeconds: number },
): Promise<BrowserSubscription[]> {
  return database.read
    .select({
      subscription: pushSubscriptions,
      client: browserSessions.client,
      tokenHash: browserSessions.tokenHash,
    })
    .from(pushSubscriptions)
    .innerJoin(browserSessions, eq(browserSessions.id, pushSubscriptions.sessionId))
    .where(and(eq(pushSubscriptions.userId, userId), gt(browserSessions.expiresAt, nowSeconds)))
    .orderBy(desc(pushSubscriptions.createdAt), desc(pushSubscriptions.sessionId));
}

/** A browser that may be told now, and whose it is. */
export interface ReachableBrowser {
  readonly subscription: PushSubscriptionRow;
  readonly role: typeof users.$inferSelect.role;
}

/** The browsers of an enterprise's members who are signed in there and may sign in, and whose push service takes messages now. */
export function listReachableBrowsers(
  database: Database,
  {
    enterpriseId,
    nowSeconds,
    limit,
  }: { readonly enterpriseId: string; readonly nowSeconds: number; readonly limit: number },
): Promise<ReachableBrowser[]> {
  const isLive = and(gt(browserSessions.expiresAt, nowSeconds), eq(browserSessions.userId, users.id));
  const isMember = and(eq(users.enterpriseId, enterpriseId), isNull(users.suspendedAt), isNull(users.leftAt));
  return database.read
    .select({ subscription: pushSubscriptions, role: users.role })
    .from(pushSubscriptions)
    .innerJoin(browserSessions, eq(browserSessions.id, pushSubscriptions.sessionId))
    .innerJoin(users, eq(users.id, pushSubscriptions.userId))
    .where(and(isLive, isMember, lte(pushSubscriptions.quietUntil, nowSeconds)))
    .orderBy(asc(pushSubscriptions.sessionId))
    .limit(limit);
}

/** Deletes a subscription, unless the browser has another one by now. */
export function deleteSubscription(
  database: Database,
  { sessionId, endpointHash }: Pick<PushSubscriptionRow, 'sessionId' | 'endpointHash'>,
): Statement {
  const { sessionId: session, endpointHash: hash } = pushSubscriptions;
  return database.read.delete(pushSubscriptions).where(and(eq(session, sessionId), eq(hash, endpointHash)));
}

/** Records what became of the last message. */
export function noteSubscription(
  database: Database,
  { sessionId }: Pick<PushSubscriptionRow, 'sessionId'>,
  change: Pick<PushSubscriptionRow, 'quietUntil' | 'problem'>,
): Statement {
  return database.read.update(pushSubscriptions).set(change).where(eq(pushSubscriptions.sessionId, sessionId));
}
