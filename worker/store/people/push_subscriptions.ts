import { and, asc, count, desc, eq, gt, inArray, isNull, lte, or, sql } from 'drizzle-orm';
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
  row: Omit<PushSubscriptionRow, 'quietUntil' | 'failures' | 'problem'>,
): Statement[] {
  const { sessionId, endpointHash } = pushSubscriptions;
  const replaced = or(eq(sessionId, row.sessionId), eq(endpointHash, row.endpointHash));
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM browser_sessions WHERE id = ${row.sessionId} AND user_id = ${row.userId})`),
    database.read.delete(pushSubscriptions).where(replaced),
    database.read.insert(pushSubscriptions).values(row),
  ];
}

/** How a browser is reached that has this endpoint, and the enterprise of its user; null if none has it. */
export async function findByEndpoint(
  database: Database,
  endpointHash: string,
): Promise<{ readonly subscription: PushSubscriptionRow; readonly enterpriseId: string } | null> {
  const rows = await database.read
    .select({ subscription: pushSubscriptions, enterpriseId: users.enterpriseId })
    .from(pushSubscriptions)
    .innerJoin(users, eq(users.id, pushSubscriptions.userId))
    .where(eq(pushSubscriptions.endpointHash, endpointHash));
  return rows[0] ?? null;
}

/** The subscriptions of a user, newest first, also of sessions that have ended and are not deleted yet. */
export function listAllOf(database: Database, userId: string): Promise<PushSubscriptionRow[]> {
  return database.read
    .select()
    .from(pushSubscriptions)
    .where(eq(pushSubscriptions.userId, userId))
    .orderBy(desc(pushSubscriptions.createdAt), desc(pushSubscriptions.sessionId));
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

/** Somebody with a browser that may be told now. */
export interface ReachableUser {
  readonly userId: string;
  readonly role: typeof users.$inferSelect.role;
}

/** The members of an enterprise who may sign in and have a browser that may be told now, after a user, in the order of their ids. */
export function listReachableUsers(
  database: Database,
  {
    enterpriseId,
    ...page
  }: {
    readonly enterpriseId: string;
    readonly nowSeconds: number;
    readonly after: string;
    readonly limit: number;
  },
): Promise<ReachableUser[]> {
  const isMember = and(eq(users.enterpriseId, enterpriseId), isNull(users.suspendedAt), isNull(users.leftAt));
  return database.read
    .selectDistinct({ userId: users.id, role: users.role })
    .from(pushSubscriptions)
    .innerJoin(browserSessions, ofItsSession())
    .innerJoin(users, eq(users.id, pushSubscriptions.userId))
    .where(and(isReachable(page.nowSeconds), isMember, gt(users.id, page.after)))
    .orderBy(asc(users.id))
    .limit(page.limit);
}

/** The browsers of some users where they are signed in, and whose push service takes messages now; newest first. */
export async function listReachableBrowsers(
  database: Database,
  { userIds, nowSeconds }: { readonly userIds: readonly string[]; readonly nowSeconds: number },
): Promise<PushSubscriptionRow[]> {
  if (userIds.length === 0) return [];
  const rows = await database.read
    .select({ subscription: pushSubscriptions })
    .from(pushSubscriptions)
    .innerJoin(browserSessions, ofItsSession())
    .where(and(isReachable(nowSeconds), inArray(pushSubscriptions.userId, [...userIds])))
    .orderBy(desc(pushSubscriptions.createdAt), desc(pushSubscriptions.sessionId));
  return rows.map(({ subscription }) => subscription);
}

function ofItsSession() {
  const { id, userId } = browserSessions;
  return and(eq(id, pushSubscriptions.sessionId), eq(userId, pushSubscriptions.userId));
}

function isReachable(nowSeconds: number) {
  return and(gt(browserSessions.expiresAt, nowSeconds), lte(pushSubscriptions.quietUntil, nowSeconds));
}

/** One subscription, not what its session got in place of it. */
function isSame({ sessionId, endpointHash }: Pick<PushSubscriptionRow, 'sessionId' | 'endpointHash'>) {
  return and(eq(pushSubscriptions.sessionId, sessionId), eq(pushSubscriptions.endpointHash, endpointHash));
}

/** Deletes a subscription, unless the browser has another one by now. */
export function deleteSubscription(
  database: Database,
  subscription: Pick<PushSubscriptionRow, 'sessionId' | 'endpointHash'>,
): Statement {
  return database.read.delete(pushSubscriptions).where(isSame(subscription));
}

/** Records what became of the last message, unless the browser has another subscription by now. */
export function noteSubscription(
  database: Database,
  subscription: Pick<PushSubscriptionRow, 'sessionId' | 'endpointHash'>,
  change: Pick<PushSubscriptionRow, 'quietUntil' | 'failures' | 'problem'>,
): Statement {
  return database.read.update(pushSubscriptions).set(change).where(isSame(subscription));
}

/** Of the browsers of an enterprise's people, by push service: how many there are, how many were not reached last, and why. */
export async function countPushServices({ read }: Database, enterpriseId: string) {
  return read
    .select({
      host: pushSubscriptions.host,
      browsers: count(),
      failing: sql<number>`count(CASE WHEN ${pushSubscriptions.failures} > 0 THEN 1 END)`,
      problem: sql<string | null>`max(${pushSubscriptions.problem})`,
    })
    .from(pushSubscriptions)
    .innerJoin(users, eq(users.id, pushSubscriptions.userId))
    .where(eq(users.enterpriseId, enterpriseId))
    .groupBy(pushSubscriptions.host)
    .orderBy(asc(pushSubscriptions.host));
}
