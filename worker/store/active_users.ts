import { and, inArray, isNotNull, sql } from 'drizzle-orm';
import { type Database, type Statement, statement } from './database.ts';
import { users } from './tables.ts';

/** The condition that none of these users is suspended; it writes nothing while it holds. */
export function whileActive(userIds: readonly string[]): Statement[] {
  return userIds.map((id) =>
    statement(sql`INSERT INTO write_guards (holds)
      SELECT 0 WHERE EXISTS (SELECT 1 FROM users WHERE id = ${id} AND suspended_at IS NOT NULL)`),
  );
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
