import { and, desc, eq, exists, gt, isNull, lt, or, type SQL } from 'drizzle-orm';
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core';
import type { Database, Statement } from './database.ts';
import { type BrowserSessionRow, findBrowserSession } from './browser_sessions.ts';
import { findLiveFamily, type TokenFamilyRow } from './refresh_tokens.ts';
import { browserSessions, personalTokens, tokenFamilies, users } from './tables.ts';

/** Where a page of sign-ins continues: browsers and programs are in one list. */
type SignInPosition = Pick<BrowserSessionRow, 'createdAt' | 'id'>;

interface SignInsPage {
  readonly userId: string;
  readonly nowSeconds: number;
  readonly after: SignInPosition | null;
  readonly limit: number;
}

/** A user's active browser sessions, newest first. */
export async function listBrowserSessions(database: Database, page: SignInsPage): Promise<BrowserSessionRow[]> {
  return database.read
    .select()
    .from(browserSessions)
    .where(and(isLiveBrowser(page), isAfter(browserSessions, page.after)))
    .orderBy(desc(browserSessions.createdAt), desc(browserSessions.id))
    .limit(page.limit);
}

/** A user's active program sign-ins, newest first. */
export async function listFamilies(database: Database, page: SignInsPage): Promise<TokenFamilyRow[]> {
  return database.read
    .select()
    .from(tokenFamilies)
    .where(and(isLiveProgram(page), isAfter(tokenFamilies, page.after)))
    .orderBy(desc(tokenFamilies.createdAt), desc(tokenFamilies.id))
    .limit(page.limit);
}

/** How a browser or program signed in: by the hash of a session's token, or the id of a program's sign-in. */
export async function findProviderOfSignIn(
  database: Database,
  signIn: string,
  nowSeconds: number,
): Promise<string | null> {
  const session = await findBrowserSession(database, signIn, nowSeconds);
  return session?.provider ?? (await findLiveFamily(database, signIn, nowSeconds))?.provider ?? null;
}

/** Whether this is an active sign-in of the user, of a browser or a program. */
export async function hasSignIn(
  database: Database,
  of: { readonly userId: string; readonly nowSeconds: number; readonly id: string },
): Promise<boolean> {
  const { read } = database;
  const browser = and(isLiveBrowser(of), eq(browserSessions.id, of.id));
  const program = and(isLiveProgram(of), eq(tokenFamilies.id, of.id));
  const [browsers, programs] = await Promise.all([
    read.select({ id: browserSessions.id }).from(browserSessions).where(browser),
    read.select({ id: tokenFamilies.id }).from(tokenFamilies).where(program),
  ]);
  return browsers.length + programs.length > 0;
}

/** By whom and how a call was made, as its caller has it. */
interface CallMaker {
  readonly userId: string;
  readonly signIn?: string;
  readonly personalToken?: string;
}

/** Whether a call that was let in would still be: its user is active, and its sign-in or its personal token has not ended. */
export async function isStillIn(
  { read }: Database,
  { userId, signIn, personalToken }: CallMaker,
  nowSeconds: number,
): Promise<boolean> {
  const of = { userId, nowSeconds };
  const lives: (SQL | undefined)[] = [];
  if (signIn !== undefined) {
    const browser = and(isLiveBrowser(of), eq(browserSessions.tokenHash, signIn));
    const program = and(isLiveProgram(of), eq(tokenFamilies.id, signIn));
    lives.push(
      or(
        exists(read.select({ id: browserSessions.id }).from(browserSessions).where(browser)),
        exists(read.select({ id: tokenFamilies.id }).from(tokenFamilies).where(program)),
      ),
    );
  }
  if (personalToken !== undefined) {
    const now = new Date(nowSeconds * 1000).toISOString();
    const { id, revokedAt, expiresAt } = personalTokens;
    const token = and(eq(id, personalToken), isNull(revokedAt), gt(expiresAt, now));
    lives.push(exists(read.select({ id }).from(personalTokens).where(token)));
  }
  const active = and(eq(users.id, userId), isNull(users.suspendedAt));
  const rows = await read
    .select({ id: users.id })
    .from(users)
    .where(and(active, ...lives));
  return rows.length > 0;
}

function isLiveBrowser({ userId, nowSeconds }: Pick<SignInsPage, 'userId' | 'nowSeconds'>) {
  return and(eq(browserSessions.userId, userId), gt(browserSessions.expiresAt, nowSeconds));
}

function isLiveProgram({ userId, nowSeconds }: Pick<SignInsPage, 'userId' | 'nowSeconds'>) {
  const live = and(isNull(tokenFamilies.revokedAt), gt(tokenFamilies.expiresAt, nowSeconds));
  return and(eq(tokenFamilies.userId, userId), live);
}

function isAfter(
  { createdAt, id }: { readonly createdAt: SQLiteColumn; readonly id: SQLiteColumn },
  after: SignInPosition | null,
) {
  if (after === null) return undefined;
  return or(lt(createdAt, after.createdAt), and(eq(createdAt, after.createdAt), lt(id, after.id)));
}

export function deleteBrowserSessionById(database: Database, id: string): Statement {
  return database.read.delete(browserSessions).where(eq(browserSessions.id, id));
}
