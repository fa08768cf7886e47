import { and, eq, gt, inArray, type SQL, sql } from 'drizzle-orm';
import { usersOfPerson } from './accounts.ts';
import { deleteSessionsOf } from './browser_sessions.ts';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring } from './expiring_rows.ts';
import { endMcpConnectionsOf } from './mcp/mcp_connections.ts';
import { revokeFamiliesOf } from './refresh_tokens.ts';
import { deviceCodes, passwords, signups } from './tables.ts';

type PasswordRow = typeof passwords.$inferSelect;
export type SignupRow = typeof signups.$inferSelect;

/** Null if no user with this address has a password. */
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

/**
 * Ends a user's browser and program sign-ins and its MCP clients, including approved programs that wait for their tokens, because their
 * holder may know only the old password.
 */
export function endAllSignIns(database: Database, userId: string, now: string): Statement[] {
  return endSignInsOf(database, sql`(${userId})`, now);
}

/** The same for every user of this user's person: a password signs in to each of them. */
export function endAllSignInsOfPerson(database: Database, userId: string, now: string): Statement[] {
  return endSignInsOf(database, usersOfPerson(userId), now);
}

/** The same for several users. */
export function endSignInsOf(database: Database, userIds: SQL, now: string): Statement[] {
  return [
    deleteSessionsOf(database, userIds),
    revokeFamiliesOf(database, userIds, now),
    endMcpConnectionsOf(database, userIds, now),
    database.read.delete(deviceCodes).where(inArray(deviceCodes.userId, userIds)),
  ];
}

/** Stores a signup, and deletes expired ones. */
export function insertSignup(database: Database, row: SignupRow, nowSeconds: number): Statement[] {
  return insertExpiring(database, signups, row, nowSeconds);
}

/** Uses up one attempt of a signup. Affects a row if an attempt is left and it has not expired. */
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

/** Uses up a signup; of two concurrent verifications one succeeds. */
export function takeSignup(database: Database, idHash: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM signups WHERE id_hash = ${idHash})`),
    database.read.delete(signups).where(eq(signups.idHash, idHash)),
  ];
}
