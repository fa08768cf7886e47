import { and, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import { hasRole, type Role, ROLES } from '../../shared/model/role.ts';
import { type Database, type Statement, statement } from './database.ts';
import { users } from './tables.ts';

/** The condition that none of these users is suspended; it writes nothing while it holds. */
export function whileActive(userIds: readonly string[]): Statement[] {
  return userIds.map((id) =>
    statement(sql`INSERT INTO write_guards (holds)
      SELECT 0 WHERE EXISTS (SELECT 1 FROM users WHERE id = ${id} AND suspended_at IS NOT NULL)`),
  );
}

/** A user with a role that it was let in with. */
export interface Actor {
  readonly userId: string;
  readonly role: Role;
}

/** The condition that a user is neither suspended nor gone, and still has its role, or a higher one. */
export function whileRole({ userId, role }: Actor): Statement {
  const roles = sql.join(
    ROLES.filter((each) => hasRole(each, role)).map((each) => sql`${each}`),
    sql`, `,
  );
  return statement(sql`INSERT INTO write_guards (holds)
    SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM users
      WHERE id = ${userId} AND role IN (${roles}) AND suspended_at IS NULL AND left_at IS NULL)`);
}

/** Why that does not hold: the user was suspended or has left, or lacks the role. Null while it holds. */
export async function findLoss(database: Database, { userId, role }: Actor): Promise<'user' | 'role' | null> {
  const [user] = await database.read
    .select({ role: users.role })
    .from(users)
    .where(and(eq(users.id, userId), isNull(users.suspendedAt), isNull(users.leftAt)));
  if (user === undefined) return 'user';
  return hasRole(user.role, role) ? null : 'role';
}

/** Whether one of these users is suspended. */
export async function hasSuspended(database: Database, userIds: readonly string[]): Promise<boolean> {
  if (userIds.length === 0) return false;
  const rows = await database.read
    .select({ id: users.id })
    .from(users)
    .where(and(inArray(users.id, [...userIds]), isNotNull(users.suspendedAt)));
  return rows.length > 0;
}
