import { and, asc, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Role } from '../../shared/model/role.ts';
import { type Database, guard, type Statement } from './database.ts';
import { endSignInsOf } from './passwords.ts';
import { sidecars, users } from './tables.ts';

export type MemberRow = typeof users.$inferSelect;

/** Service accounts are users that no person signs in as; nothing about members concerns them. */
const IS_PERSON = sql`NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${users.id})`;

/** A person's user of this enterprise who has not left. */
export async function findMember(database: Database, enterpriseId: string, id: string): Promise<MemberRow | null> {
  const rows = await database.read
    .select()
    .from(users)
    .where(and(eq(users.id, id), eq(users.enterpriseId, enterpriseId), isNull(users.leftAt), IS_PERSON));
  return rows[0] ?? null;
}

export async function listMembers(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<MemberRow[]> {
  const after = page.after === null ? undefined : gt(users.id, page.after);
  return database.read
    .select()
    .from(users)
    .where(and(eq(users.enterpriseId, page.enterpriseId), isNull(users.leftAt), IS_PERSON, after))
    .orderBy(asc(users.id))
    .limit(page.limit);
}

/** The owners of an enterprise who are not suspended. */
export async function listLiveOwners(database: Database, enterpriseId: string): Promise<MemberRow[]> {
  return database.read
    .select()
    .from(users)
    .where(and(eq(users.enterpriseId, enterpriseId), eq(users.role, 'owner'), isNull(users.suspendedAt)));
}

/** Whether an enterprise has another owner than this user who is not suspended. */
export async function hasOtherOwner(database: Database, enterpriseId: string, userId: string): Promise<boolean> {
  return (await listLiveOwners(database, enterpriseId)).some(({ id }) => id !== userId);
}

/** Changes a member; a conflict if that would leave its enterprise without an owner who can sign in. */
export function changeMember(
  database: Database,
  member: MemberRow,
  change: { readonly role: Role; readonly suspendedAt: string | null },
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM users WHERE id = ${member.id} AND role = ${member.role})`),
    database.read.update(users).set(change).where(eq(users.id, member.id)),
    ...guard(
      sql`EXISTS (SELECT 1 FROM users
        WHERE enterprise_id = ${member.enterpriseId} AND role = 'owner' AND suspended_at IS NULL)`,
    ),
  ];
}

/** Ends every sign-in of a user, including approved programs that wait for their tokens, and revokes its sidecars. */
export function signOutEverywhere(database: Database, userId: string, now: string): Statement[] {
  return signOutUsers(database, sql`(${userId})`, now);
}

/** The same for several users. */
export function signOutUsers(database: Database, userIds: SQL, now: string): Statement[] {
  return [
    ...endSignInsOf(database, userIds, now),
    database.read
      .update(sidecars)
      .set({ revokedAt: now })
      .where(and(inArray(sidecars.userId, userIds), isNull(sidecars.revokedAt))),
  ];
}
