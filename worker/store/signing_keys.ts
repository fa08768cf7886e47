import { asc, gt, isNull, lte, or, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { signingKeys } from './tables.ts';

export type SigningKeyRow = typeof signingKeys.$inferSelect;

/** The signing key and earlier ones whose tokens may still be valid; oldest first. */
export async function listSigningKeys(database: Database, nowSeconds: number): Promise<SigningKeyRow[]> {
  return database.read
    .select()
    .from(signingKeys)
    .where(or(isNull(signingKeys.verifiesUntil), gt(signingKeys.verifiesUntil, nowSeconds)))
    .orderBy(asc(signingKeys.createdAt), asc(signingKeys.id));
}

/** Stores the first key; a conflict if another program was first. */
export function insertFirstKey(database: Database, row: SigningKeyRow): Statement[] {
  return [
    ...guard(sql`NOT EXISTS (SELECT 1 FROM signing_keys WHERE verifies_until IS NULL)`),
    database.read.insert(signingKeys).values(row),
  ];
}

/** Replaces the signing key. Earlier keys verify at most until the given time; expired ones are deleted. */
export function replaceSigningKey(
  database: Database,
  row: SigningKeyRow,
  times: { readonly verifiesUntil: number; readonly nowSeconds: number },
): Statement[] {
  const { verifiesUntil, nowSeconds } = times;
  const isLonger = or(isNull(signingKeys.verifiesUntil), gt(signingKeys.verifiesUntil, verifiesUntil));
  return [
    database.read.update(signingKeys).set({ verifiesUntil }).where(isLonger),
    database.read.delete(signingKeys).where(lte(signingKeys.verifiesUntil, nowSeconds)),
    database.read.insert(signingKeys).values(row),
  ];
}
