import { and, eq, gt, lt, sql } from 'drizzle-orm';
import { deleteSessionsOfUser } from './browser_sessions.ts';
import { type Database, guard, type Statement } from './database.ts';
import { revokeFamiliesOf } from './refresh_tokens.ts';
import { deviceCodes, passwords, signups } from './tables.ts';

export type PasswordRow = typeof passwords.$inferSelect;
export type SignupRow = typeof signups.$inferSelect;

/** Null when nobody has a password with this address. */
export async function findPassword(database: Database, email: string): Promise<PasswordRow | null> {
  const rows = await database.read.select().from(passwords).where(eq(passwords.email, email));
  return rows[0] ?? null;
}

export function setPassword(database: Database, row: PasswordRow): Statement {
  const { hash, updatedAt } = row;
  return database.read
    .insert(passwords)
    .values(row)
    .onConflictDoUpdate({ target: passwords.email, set: { hash, updatedAt } });
}

/** Signs a user's browsers and programs out, also those that only wait for their tokens: whoever knew the password before is out. */
export function endAllSignIns(database: Database, userId: string, now: string): Statement[] {
  return [
    deleteSessionsOfUser(database, userId),
    revokeFamiliesOf(database, userId, now),
    database.read.delete(deviceCodes).where(eq(deviceCodes.userId, userId)),
  ];
}

/** Notes that somebody signs up, and forgets those whose time is up. */
export function insertSignup(database: Database, row: SignupRow, nowSeconds: number): Statement[] {
  return [
    database.read.delete(signups).where(lt(signups.expiresAt, nowSeconds)),
    database.read.insert(signups).values(row),
  ];
}

/** Uses one of the tries of a signup up: it affects a row as long as there is one left, and time. */
export function useSignupTry(database: Database, idHash: string, nowSeconds: number): Statement {
  return database.read
    .update(signups)
    .set({ attemptsLeft: sql`${signups.attemptsLeft} - 1` })
    .where(and(eq(signups.idHash, idHash), gt(signups.attemptsLeft, 0), gt(signups.expiresAt, nowSeconds)));
}

export async function findSignup(database: Database, idHash: string): Promise<SignupRow | null> {
  const rows = await database.read.select().from(signups).where(eq(signups.idHash, idHash));
  return rows[0] ?? null;
}

/** Uses a signup up: of two who verify it, one gets on. */
export function takeSignup(database: Database, idHash: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM signups WHERE id_hash = ${idHash})`),
    database.read.delete(signups).where(eq(signups.idHash, idHash)),
  ];
}
