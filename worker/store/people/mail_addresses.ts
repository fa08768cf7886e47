import { sql } from 'drizzle-orm';
import { hasRole, type Role, ROLES } from '../../../shared/model/role.ts';
import type { Database } from '../database.ts';

/** The members of an enterprise with a role, or in a group. */
export interface MailReceivers {
  readonly enterpriseId: string;
  readonly to: { readonly role?: Role | undefined; readonly groupId?: string | undefined };
}

/** A member to whom a mail is sent. */
export interface MailReceiver {
  readonly userId: string;
  readonly address: string;
}

/** Those who may sign in and have proven the address that the enterprise knows them by, the first ones. */
export function listMailReceivers(
  database: Database,
  { enterpriseId, to: { role, groupId } }: MailReceivers,
  limit: number,
): Promise<MailReceiver[]> {
  const held = ROLES.filter((each) => role !== undefined && hasRole(each, role));
  const meant =
    groupId === undefined
      ? sql`users.role IN ${held}`
      : sql`users.id IN (SELECT user_id FROM group_members WHERE group_id = ${groupId})`;
  return database.read.all<MailReceiver>(sql`SELECT users.id AS "userId", users.email AS address
    FROM users JOIN people ON people.id = users.person_id
    WHERE users.enterprise_id = ${enterpriseId} AND users.suspended_at IS NULL AND users.left_at IS NULL
      AND lower(users.email) = people.verified_email AND ${meant}
    ORDER BY users.id LIMIT ${limit}`);
}
