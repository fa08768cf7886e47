import { and, eq, gt, inArray, ne, type SQL, sql } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { insertExpiring, takeRow } from './expiring_rows.ts';
import { browserSessions, signInLinks } from './tables.ts';

export type BrowserSessionRow = typeof browserSessions.$inferSelect;
type SignInLinkRow = typeof signInLinks.$inferSelect;

/** Stores a sign-in link by the hash of its code, and deletes expired ones. */
export function insertSignInLink(database: Database, row: SignInLinkRow, nowSeconds: number): Statement[] {
  return insertExpiring(database, signInLinks, row, nowSeconds);
}

export async function findSignInLink(database: Database, codeHash: string): Promise<SignInLinkRow | null> {
  const rows = await database.read.select().from(signInLinks).where(eq(signInLinks.codeHash, codeHash));
  return rows[0] ?? null;
}

/** Uses up a link and creates its session in one write, so a link creates one session even for concurrent requests. */
export function exchangeSignInLink(
  database: Database,
  codeHash: string,
  session: BrowserSessionRow,
  nowSeconds: number,
): Statement[] {
  return [
    ...takeRow(database, signInLinks, signInLinks.codeHash, codeHash),
    ...insertBrowserSession(database, session, nowSeconds),
  ];
}

export async function findBrowserSession(
  database: Database,
  tokenHash: string,
  nowSeconds: number,
): Promise<BrowserSessionRow | null> {
  const rows = await database.read
    .select()
    .from(browserSessions)
    .where(and(eq(browserSessions.tokenHash, tokenHash), gt(browserSessions.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** Sessions of one user. One more ends the one that was used longest ago: a person must always be able to sign in. */
const MOST_SESSIONS = 100;

/** Creates a session, and deletes expired ones and those that are too many. */
export function insertBrowserSession(database: Database, session: BrowserSessionRow, nowSeconds: number): Statement[] {
  const newest = sql`SELECT id FROM browser_sessions WHERE user_id = ${session.userId} AND id <> ${session.id}
    ORDER BY last_seen_at DESC, id DESC LIMIT ${MOST_SESSIONS - 1}`;
  const others = and(eq(browserSessions.userId, session.userId), ne(browserSessions.id, session.id));
  return [
    ...insertExpiring(database, browserSessions, session, nowSeconds),
    database.read.delete(browserSessions).where(and(others, sql`${browserSessions.id} NOT IN (${newest})`)),
  ];
}

export function touchBrowserSession(database: Database, id: string, lastSeenAt: string): Statement {
  return database.read.update(browserSessions).set({ lastSeenAt }).where(eq(browserSessions.id, id));
}

export function deleteBrowserSession(database: Database, tokenHash: string): Statement {
  return database.read.delete(browserSessions).where(eq(browserSessions.tokenHash, tokenHash));
}

export function deleteSessionsOf(database: Database, userIds: SQL): Statement {
  return database.read.delete(browserSessions).where(inArray(browserSessions.userId, userIds));
}

/** Ends all browser sessions and deletes all sign-in links. */
export function deleteAllSessions(database: Database): Statement[] {
  return [database.read.delete(browserSessions), database.read.delete(signInLinks)];
}
