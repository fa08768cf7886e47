import { and, asc, count, eq, inArray, sql } from 'drizzle-orm';
import { type Database, type Statement, statement } from '../database.ts';
import { groupMembers, groups, scimGroups, users } from '../tables.ts';
import { type Columns, filterCondition } from './scim_filter.ts';
import { type FilteredPage, isAmong } from './scim_users.ts';

const GROUP_COLUMNS: Columns = {
  id: { kind: 'exact', of: sql`${groups.id}` },
  displayname: { kind: 'text', of: sql`${groups.name}` },
  externalid: { kind: 'exact', of: sql`${scimGroups.externalId}` },
  members: {
    kind: 'list',
    from: sql`(SELECT m.user_id AS value FROM group_members AS m WHERE m.group_id = ${groups.id}) AS of_member`,
    columns: { value: { kind: 'exact', of: sql`of_member.value` } },
  },
  'meta.created': { kind: 'time', of: sql`${groups.createdAt}` },
  'meta.lastmodified': { kind: 'time', of: sql`${scimGroups.updatedAt}` },
};

/** A group with what its directory says. */
export interface DirectoryGroup {
  readonly group: typeof groups.$inferSelect;
  readonly scim: typeof scimGroups.$inferSelect;
}

export async function findDirectoryGroup(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<DirectoryGroup | null> {
  const isOne = and(eq(scimGroups.enterpriseId, enterpriseId), eq(groups.id, id));
  return (await selectGroups(database).where(isOne))[0] ?? null;
}

/** The groups that a directory manages, oldest first, and how many fit. */
export async function listDirectoryGroups(database: Database, { enterpriseId, filter, offset, limit }: FilteredPage) {
  const chosen = filter === null ? undefined : filterCondition(filter, GROUP_COLUMNS);
  const fits = and(eq(scimGroups.enterpriseId, enterpriseId), chosen);
  const counted = database.read
    .select({ n: count() })
    .from(scimGroups)
    .innerJoin(groups, eq(groups.id, scimGroups.groupId));
  const total = (await counted.where(fits))[0]?.n ?? 0;
  const rows = await selectGroups(database).where(fits).orderBy(asc(groups.id)).limit(limit).offset(offset);
  return { total, rows };
}

function selectGroups(database: Database) {
  return database.read
    .select({ group: groups, scim: scimGroups })
    .from(scimGroups)
    .innerJoin(groups, eq(groups.id, scimGroups.groupId));
}

/** The members of these groups, with the names that people see. */
export async function listMembersOfGroups(
  database: Database,
  groupIds: readonly string[],
): Promise<{ groupId: string; value: string; display: string }[]> {
  return database.read
    .select({ groupId: groupMembers.groupId, value: users.id, display: users.displayName })
    .from(groupMembers)
    .innerJoin(users, eq(users.id, groupMembers.userId))
    .where(inArray(groupMembers.groupId, [...groupIds]))
    .orderBy(asc(users.id));
}

export function putScimGroup(database: Database, row: DirectoryGroup['scim']): Statement {
  const { externalId, updatedAt } = row;
  return database.read
    .insert(scimGroups)
    .values(row)
    .onConflictDoUpdate({ target: scimGroups.groupId, set: { externalId, updatedAt } });
}

/** Adds and removes members of a group that a directory manages; only users that it manages are added. */
export function changeDirectoryMembers(
  { enterpriseId, groupId }: DirectoryGroup['scim'],
  { added, removed }: { readonly added: readonly string[]; readonly removed: readonly string[] },
): Statement[] {
  const removes = statement(sql`DELETE FROM group_members
    WHERE group_id = ${groupId} AND ${isAmong(sql`user_id`, removed)}`);
  const adds = statement(sql`INSERT INTO group_members (group_id, user_id)
    SELECT ${groupId}, user_id FROM scim_users
    WHERE enterprise_id = ${enterpriseId} AND ${isAmong(sql`user_id`, added)}`);
  return [...(removed.length > 0 ? [removes] : []), ...(added.length > 0 ? [adds] : [])];
}
