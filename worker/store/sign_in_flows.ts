import { and, eq, gt } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { insertExpiring, takeRow } from './expiring_rows.ts';
import { signInFlows } from './tables.ts';

export type SignInFlowRow = typeof signInFlows.$inferSelect;

/** Stores a sign-in started at a provider, and deletes expired ones. */
export function insertSignInFlow(database: Database, row: SignInFlowRow, nowSeconds: number): Statement[] {
  return insertExpiring(database, signInFlows, row, nowSeconds);
}

export async function findSignInFlow(
  database: Database,
  stateHash: string,
  nowSeconds: number,
): Promise<SignInFlowRow | null> {
  const rows = await database.read
    .select()
    .from(signInFlows)
    .where(and(eq(signInFlows.stateHash, stateHash), gt(signInFlows.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** Uses up a sign-in; of two concurrent callbacks one succeeds. */
export function takeSignInFlow(database: Database, stateHash: string): Statement[] {
  return takeRow(database, signInFlows, signInFlows.stateHash, stateHash);
}
