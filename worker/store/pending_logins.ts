import { and, count, eq, gt, lte, ne, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { insertExpiring, takeRow } from './expiring_rows.ts';
import { pendingLogins } from './tables.ts';

export type PendingLoginRow = typeof pendingLogins.$inferSelect;

/** Stores a new one in place of an earlier one of the same user and program, and deletes expired ones. */
export function insertPendingLogin(database: Database, row: PendingLoginRow, nowSeconds: number): Statement[] {
  const isSame = and(eq(pendingLogins.userId, row.userId), eq(pendingLogins.program, row.program));
  return [
    database.read.delete(pendingLogins).where(isSame),
    ...insertExpiring(database, pendingLogins, row, nowSeconds),
  ];
}

/** Deletes those that are not found any more, with their tokens. */
export function deleteExpiredLogins(database: Database, nowSeconds: number): Statement[] {
  return [database.read.delete(pendingLogins).where(lte(pendingLogins.expiresAt, nowSeconds))];
}

/** All of this user, also expired ones. */
export function listLoginsOf(database: Database, userId: string): Promise<PendingLoginRow[]> {
  return database.read.select().from(pendingLogins).where(eq(pendingLogins.userId, userId));
}

export function deleteLoginsOf(database: Database, userId: string): Statement[] {
  return [database.read.delete(pendingLogins).where(eq(pendingLogins.userId, userId))];
}

type OfProgram = Pick<PendingLoginRow, 'userId' | 'program'>;

/** How many of this user's other programs have not expired. */
export async function countOtherLogins(
  database: Database,
  { userId, program }: OfProgram,
  nowSeconds: number,
): Promise<number> {
  const rows = await database.read
    .select({ all: count() })
    .from(pendingLogins)
    .where(
      and(
        eq(pendingLogins.userId, userId),
        ne(pendingLogins.program, program),
        gt(pendingLogins.expiresAt, nowSeconds),
      ),
    );
  return rows[0]?.all ?? 0;
}

/** The one of this user and program, also if it has expired. */
export async function findLoginOfProgram(
  database: Database,
  { userId, program }: OfProgram,
): Promise<PendingLoginRow | null> {
  const rows = await database.read
    .select()
    .from(pendingLogins)
    .where(and(eq(pendingLogins.userId, userId), eq(pendingLogins.program, program)));
  return rows[0] ?? null;
}

/** One of this user that has not expired. */
export async function findPendingLogin(
  database: Database,
  { id, userId }: Pick<PendingLoginRow, 'id' | 'userId'>,
  nowSeconds: number,
): Promise<PendingLoginRow | null> {
  const rows = await database.read
    .select()
    .from(pendingLogins)
    .where(and(eq(pendingLogins.id, id), eq(pendingLogins.userId, userId), gt(pendingLogins.expiresAt, nowSeconds)));
  return rows[0] ?? null;
}

/** Holds the tokens of an open one; a conflict if it is not open any more. */
export function holdPendingLogin(
  database: Database,
  id: string,
  held: Pick<PendingLoginRow, 'sealed' | 'account'>,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM pending_logins WHERE id = ${id} AND state = 'open')`),
    database.read
      .update(pendingLogins)
      .set({ ...held, state: 'held' })
      .where(eq(pendingLogins.id, id)),
  ];
}

/** Deletes one; of two concurrent callers one succeeds. */
export function takePendingLogin(database: Database, id: string): Statement[] {
  return takeRow(database, pendingLogins, pendingLogins.id, id);
}
