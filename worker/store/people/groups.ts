import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { groupMembers, groups, users } from '../tables.ts';

export type GroupRow = typeof groups.$inferSelect;
export interface CountedGroup extends GroupRow {
  readonly members: number;
  /** 1 if a directory manages it. */
  readonly isManaged: number;
}

/** A directory manages a group as long as a token of it works. */
const counted = (now: string) => ({
  id: groups.id,
  enterpriseId: groups.enterpriseId,
  name: groups.name,
  createdAt: groups.createdAt,
  members: sql<number>`(SELECT count(*) FROM group_members WHERE group_id = ${groups.id})`,
  isManaged: sql<number>`EXISTS (SELECT 1 FROM scim_groups JOIN scim_tokens USING (enterprise_id)
    WHERE scim_groups.group_id = groups.id AND revoked_at IS NULL AND expires_at > ${now})`,
});

/** A group of this enterprise. */
export async function findGroup(
  database: Database,
  enterpriseId: string,
  { id, now }: { readonly id: string; readonly now: string },
): Promise<CountedGroup | null> {
  const isOne = and(eq(groups.id, id), eq(groups.enterpriseId, enterpriseId));
  return (await database.read.select(counted(now)).from(groups).where(isOne))[0] ?? null;
}

/** The group of this enterprise with this name, in whatever case. */
export async function findGroupNamed(database: Database, enterpriseId: string, name: string): Promise<GroupRow | null> {
  const isOne = and(eq(groups.enterpriseId, enterpriseId), eq(groups.name, name));
  return (await database.read.select().from(groups).where(isOne))[0] ?? null;
}

interface IdPage {
  readonly after: string | null;
  readonly limit: number;
}

/** The groups of an enterprise, oldest first. */
export async function listGroups(
  database: Database,
  { enterpriseId, after, limit, now }: IdPage & { readonly enterpriseId: string; readonly now: string },
): Promise<CountedGroup[]> {
  const later = after === null ? undefined : gt(groups.id, after);
  return database.read
    .select(counted(now))
    .from(groups)
    .where(and(eq(groups.enterpriseId, enterpriseId), later))
    .orderBy(asc(groups.id))
    .limit(limit);
}

/** The people in a group, in the order of their ids. */
export async function listGroupMembers(
  database: Database,
  { groupId, after, limit }: IdPage & { readonly groupId: string },
): Promise<{ id: string; displayName: string }[]> {
  const later = after === null ? undefined : gt(users.id, after);
  return database.read
    .select({ id: users.id, displayName: users.displayName })
    .from(groupMembers)
    .innerJoin(users, eq(users.id, groupMembers.userId))
    .where(and(eq(groupMembers.groupId, groupId), later))
    .orderBy(asc(users.id))
    .limit(limit);
}

export async function isGroupMember(database: Database, groupId: string, userId: string): Promise<boolean> {
  const isOne = and(eq(groupMembers.groupId, groupId), eq(groupMembers.userId, userId));
  return (await database.read.select().from(groupMembers).where(isOne)).length > 0;
}

export function insertGroup(database: Database, row: GroupRow): Statement[] {
  return [database.read.insert(groups).values(row)];
}

export function renameGroup(database: Database, { id }: GroupRow, name: string): Statement[] {
  return [...exists(id), database.read.update(groups).set({ name }).where(eq(groups.id, id))];
}

export function deleteGroup(database: Database, { id }: GroupRow): Statement[] {
  return [...exists(id), database.read.delete(groups).where(eq(groups.id, id))];
}

/** Adds a user who is in the group's enterprise; a conflict if the group or the user is gone. */
export function insertGroupMember(database: Database, group: GroupRow, userId: string): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM users
      WHERE id = ${userId} AND enterprise_id = ${group.enterpriseId} AND left_at IS NULL)`),
    database.read.insert(groupMembers).values({ groupId: group.id, userId }),
  ];
}

export function deleteGroupMember(database: Database, groupId: string, userId: string): Statement[] {
  const isOne = and(eq(groupMembers.groupId, groupId), eq(groupMembers.userId, userId));
  return [database.read.delete(groupMembers).where(isOne)];
}

/** The user of this enterprise with this address, if it has not left. */
export async function findColleague(database: Database, enterpriseId: string, email: string) {
  const rows = await database.read
    .select({ id: users.id, displayName: users.displayName })
    .from(users)
    .where(and(eq(users.enterpriseId, enterpriseId), sql`lower(${users.email}) = ${email}`, isNull(users.leftAt)))
    .limit(2);
  return rows.length === 1 ? (rows[0] ?? null) : null;
}

function exists(id: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM groups WHERE id = ${id})`);
}
