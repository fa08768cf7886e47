import { and, eq, gt, lt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { signInFlows } from './tables.ts';

export type SignInFlowRow = typeof signInFlows.$inferSelect;

/** Stores a sign-in started at a provider, and deletes expired ones. */
export function insertSignInFlow(database: Database, row: SignInFlowRow, nowSeconds: number): Statement[] {
  return [
    database.read.delete(signInFlows).where(lt(signInFlows.expiresAt, nowSeconds)),
    database.read.insert(signInFlows).values(row),
  ];
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
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM sign_in_flows WHERE state_hash = ${stateHash})`),
    database.read.delete(signInFlows).where(eq(signInFlows.stateHash, stateHash)),
  ];
}
