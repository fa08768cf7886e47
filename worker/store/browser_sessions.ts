import { and, eq, gt, lt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { browserSessions, signInLinks } from './tables.ts';

export type BrowserSessionRow = typeof browserSessions.$inferSelect;
export type SignInLinkRow = typeof signInLinks.$inferSelect;

/** Stores a sign-in link by the hash of its code, and deletes expired ones. */
export function insertSignInLink(database: Database, row: SignInLinkRow, nowSeconds: number): Statement[] {
  return [
    database.read.delete(signInLinks).where(lt(signInLinks.expiresAt, nowSeconds)),
    database.read.insert(signInLinks).values(row),
  ];
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
    ...guard(sql`EXISTS (SELECT 1 FROM sign_in_links WHERE code_hash = ${codeHash})`),
    database.read.delete(signInLinks).where(eq(signInLinks.codeHash, codeHash)),
    database.read.delete(browserSessions).where(lt(browserSessions.expiresAt, nowSeconds)),
    database.read.insert(browserSessions).values(session),
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

/** Creates a session, and deletes expired ones. */
export function insertBrowserSession(database: Database, session: BrowserSessionRow, nowSeconds: number): Statement[] {
  return [
    database.read.delete(browserSessions).where(lt(browserSessions.expiresAt, nowSeconds)),
    database.read.insert(browserSessions).values(session),
  ];
}

export function touchBrowserSession(database: Database, id: string, lastSeenAt: string): Statement {
  return database.read.update(browserSessions).set({ lastSeenAt }).where(eq(browserSessions.id, id));
}

export function deleteBrowserSession(database: Database, tokenHash: string): Statement {
  return database.read.delete(browserSessions).where(eq(browserSessions.tokenHash, tokenHash));
}

export function deleteSessionsOfUser(database: Database, userId: string): Statement {
  return database.read.delete(browserSessions).where(eq(browserSessions.userId, userId));
}

/** Ends all browser sessions and deletes all sign-in links. */
export function deleteAllSessions(database: Database): Statement[] {
  return [database.read.delete(browserSessions), database.read.delete(signInLinks)];
}
