import { and, count, eq, gt, lte, ne, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { takeRow } from './expiring_rows.ts';
import { pendingLogins } from './tables.ts';

export type PendingLoginRow = typeof pendingLogins.$inferSelect;

/** How many logins wait, and of whom. */
interface LoginLimit {
  readonly most: number;
  readonly nowSeconds: number;
}

/**
 * Stores a new one in place of an earlier one of the same user and program, a conflict if that one is not `earlier` or has got its
 * tokens since. Also a conflict if as many of other programs wait as may.
 */
export function insertPendingLogin(
  database: Database,
  row: PendingLoginRow,
  earlier: Pick<PendingLoginRow, 'id' | 'state'> | null,
  { most, nowSeconds }: LoginLimit,
): Statement[] {
  const { userId, program } = row;
  const isSame = and(eq(pendingLogins.userId, userId), eq(pendingLogins.program, program));
  return [
    ...guard(sql`(SELECT count(*) FROM pending_logins WHERE user_id = ${userId} AND program != ${program}
      AND expires_at > ${nowSeconds}) < ${most}`),
    ...guard(sql`NOT EXISTS (SELECT 1 FROM pending_logins WHERE user_id = ${userId} AND program = ${program}
      AND (id IS NOT ${earlier?.id ?? null} OR state IS NOT ${earlier?.state ?? null}))`),
    database.read.delete(pendingLogins).where(isSame),
    database.read.insert(pendingLogins).values(row),
  ];
}

/** Those that are not found any more, at most 100. */
export function listExpiredLogins(database: Database, nowSeconds: number): Promise<PendingLoginRow[]> {
  return database.read.select().from(pendingLogins).where(lte(pendingLogins.expiresAt, nowSeconds)).limit(100);
}

/** All of this user, also expired ones. */
export function listLoginsOf(database: Database, userId: string): Promise<PendingLoginRow[]> {
  return database.read.select().from(pendingLogins).where(eq(pendingLogins.userId, userId));
}

/** Deletes these; a conflict if one of them is gone or has got its tokens since. */
export function deleteLogins(database: Database, rows: readonly PendingLoginRow[]): Statement[] {
  return rows.flatMap(({ id, state }) => [
    ...guard(sql`EXISTS (SELECT 1 FROM pending_logins WHERE id = ${id} AND state = ${state})`),
    database.read.delete(pendingLogins).where(eq(pendingLogins.id, id)),
  ]);
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

/** Gives an open one to a sidecar; a conflict if another one has it. */
export function claimPendingLogin(database: Database, id: string, sidecarId: string): Statement[] {
  return [
    ...guard(
      sql`EXISTS (SELECT 1 FROM pending_logins WHERE id = ${id} AND COALESCE(sidecar_id, ${sidecarId}) = ${sidecarId})`,
    ),
    database.read.update(pendingLogins).set({ sidecarId }).where(eq(pendingLogins.id, id)),
  ];
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
