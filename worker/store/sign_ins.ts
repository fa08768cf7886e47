import { and, desc, eq, gt, isNull } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import type { BrowserSessionRow } from './browser_sessions.ts';
import type { TokenFamilyRow } from './refresh_tokens.ts';
import { browserSessions, tokenFamilies } from './tables.ts';

/** A user's live browser sessions, the newest first. */
export async function listBrowserSessions(
  database: Database,
  of: { readonly userId: string; readonly nowSeconds: number; readonly limit: number },
): Promise<BrowserSessionRow[]> {
  return database.read
    .select()
    .from(browserSessions)
    .where(and(eq(browserSessions.userId, of.userId), gt(browserSessions.expiresAt, of.nowSeconds)))
    .orderBy(desc(browserSessions.id))
    .limit(of.limit);
}

/** A user's live sign-ins of programs, the newest first. */
export async function listFamilies(
  database: Database,
  of: { readonly userId: string; readonly nowSeconds: number; readonly limit: number },
): Promise<TokenFamilyRow[]> {
  const live = and(isNull(tokenFamilies.revokedAt), gt(tokenFamilies.expiresAt, of.nowSeconds));
  return database.read
    .select()
    .from(tokenFamilies)
    .where(and(eq(tokenFamilies.userId, of.userId), live))
    .orderBy(desc(tokenFamilies.id))
    .limit(of.limit);
}

export function deleteBrowserSessionById(database: Database, id: string): Statement {
  return database.read.delete(browserSessions).where(eq(browserSessions.id, id));
}
