import { and, count, eq, gt, sql } from 'drizzle-orm';
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

/** How many of this user have not expired. */
export async function countPendingLogins(database: Database, userId: string, nowSeconds: number): Promise<number> {
  const rows = await database.read
    .select({ all: count() })
    .from(pendingLogins)
    .where(and(eq(pendingLogins.userId, userId), gt(pendingLogins.expiresAt, nowSeconds)));
  return rows[0]?.all ?? 0;
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
