import { and, eq, gt, lt, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { signInFlows } from './tables.ts';

export type SignInFlowRow = typeof signInFlows.$inferSelect;

/** Notes that a sign-in began at a provider, and forgets those whose time is up. */
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

/** Uses a sign-in up: of two who come back with it, one gets on. */
export function takeSignInFlow(database: Database, stateHash: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM sign_in_flows WHERE state_hash = ${stateHash})`),
    database.read.delete(signInFlows).where(eq(signInFlows.stateHash, stateHash)),
  ];
}
