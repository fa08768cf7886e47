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

/** Those roles that include one. */
function rolesFrom(needed: Role): Role[] {
  return ROLES.filter((role) => hasRole(role, needed));
}

/** The condition that a user still has its role, or a higher one. */
export function whileRole({ userId, role }: Actor): Statement {
  const roles = sql.join(
    rolesFrom(role).map((each) => sql`${each}`),
    sql`, `,
  );
  return statement(sql`INSERT INTO write_guards (holds)
    SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = ${userId} AND role IN (${roles}) AND left_at IS NULL)`);
}

/** Whether a user still has its role, or a higher one. */
export async function holdsRole(database: Database, { userId, role }: Actor): Promise<boolean> {
  const rows = await database.read
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, userId), inArray(users.role, rolesFrom(role)), isNull(users.leftAt)));
  return rows.length > 0;
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
