import { and, asc, count, eq, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { Filter } from '../../../shared/scim/filter.ts';
import { type Account, selectAccounts } from '../accounts.ts';
import { type Database, guard, type Statement } from '../database.ts';
import type { MemberRow } from '../members.ts';
import { groupMembers, groups, identities, people, scimGroups, scimUsers, users } from '../tables.ts';
import { type Columns, filterCondition } from './scim_filter.ts';

export type ScimUserRow = typeof scimUsers.$inferSelect;

/** A user with what its directory says. */
export interface DirectoryUser {
  readonly user: MemberRow;
  readonly scim: ScimUserRow;
}

const ofAttributes = (path: string): SQL => sql`json_extract(${scimUsers.attributes}, ${`$.${path}`}) COLLATE NOCASE`;
const ofElement = (name: string): SQL => sql`json_extract(element.value, ${`$.${name}`})`;
const NAME_PARTS = ['formatted', 'familyName', 'givenName', 'middleName', 'honorificPrefix', 'honorificSuffix'];

const USER_COLUMNS: Columns = {
  id: { kind: 'exact', of: sql`${users.id}` },
  username: { kind: 'text', of: sql`${scimUsers.userName}` },
  externalid: { kind: 'exact', of: sql`${scimUsers.externalId}` },
  displayname: { kind: 'text', of: ofAttributes('displayName') },
  active: { kind: 'boolean', of: sql`(${users.suspendedAt} IS NULL)` },
  ...Object.fromEntries(
    NAME_PARTS.map((part) => [
      `name.${part.toLowerCase()}`,
      { kind: 'text', of: ofAttributes(`name.${part}`) } as const,
    ]),
  ),
  emails: {
    kind: 'list',
    from: sql`json_each(${scimUsers.attributes}, '$.emails') AS element`,
    columns: {
      value: { kind: 'text', of: sql`${ofElement('value')} COLLATE NOCASE` },
      type: { kind: 'text', of: sql`${ofElement('type')} COLLATE NOCASE` },
      display: { kind: 'text', of: sql`${ofElement('display')} COLLATE NOCASE` },
      primary: { kind: 'boolean', of: sql`coalesce(${ofElement('primary')}, 0)` },
    },
  },
  groups: {
    kind: 'list',
    from: sql`(SELECT m.group_id AS value FROM group_members AS m JOIN scim_groups USING (group_id)
      WHERE m.user_id = ${users.id}) AS of_group`,
    columns: { value: { kind: 'exact', of: sql`of_group.value` } },
  },
  'meta.created': { kind: 'time', of: sql`${scimUsers.createdAt}` },
  'meta.lastmodified': { kind: 'time', of: sql`${scimUsers.updatedAt}` },
};

/** The user of an enterprise that its directory manages. */
export async function findDirectoryUser(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<DirectoryUser | null> {
  return (await selectUsers(database).where(and(ofEnterprise(enterpriseId), eq(users.id, id))))[0] ?? null;
}

/** The user with this name, in whatever case, or with this address. */
export async function findDirectoryTwin(
  database: Database,
  enterpriseId: string,
  { userName, email }: { readonly userName: string; readonly email: string },
): Promise<DirectoryUser | null> {
  const isTwin = or(eq(scimUsers.userName, userName), eq(scimUsers.email, email));
  return (await selectUsers(database).where(and(ofEnterprise(enterpriseId), isTwin)))[0] ?? null;
}

/** A page of a list that a filter chooses. */
export interface FilteredPage {
  readonly enterpriseId: string;
  readonly filter: Filter | null;
  readonly offset: number;
  readonly limit: number;
}

/** The users that a directory manages, oldest first, and how many fit. */
export async function listDirectoryUsers(database: Database, { enterpriseId, filter, offset, limit }: FilteredPage) {
  const fits = and(ofEnterprise(enterpriseId), filter === null ? undefined : filterCondition(filter, USER_COLUMNS));
  const counted = database.read.select({ n: count() }).from(scimUsers).innerJoin(users, eq(users.id, scimUsers.userId));
  const total = (await counted.where(fits))[0]?.n ?? 0;
  const rows = await selectUsers(database).where(fits).orderBy(asc(users.id)).limit(limit).offset(offset);
  return { total, rows };
}

function selectUsers(database: Database) {
  return database.read
    .select({ user: users, scim: scimUsers })
    .from(scimUsers)
    .innerJoin(users, eq(users.id, scimUsers.userId));
}

function ofEnterprise(enterpriseId: string): SQL {
  return eq(scimUsers.enterpriseId, enterpriseId);
}

/** The groups of these users that a directory manages. */
export async function listDirectoryGroupsOf(
  database: Database,
  userIds: readonly string[],
): Promise<{ userId: string; value: string; display: string }[]> {
  return database.read
    .select({ userId: groupMembers.userId, value: groups.id, display: groups.name })
    .from(groupMembers)
    .innerJoin(groups, eq(groups.id, groupMembers.groupId))
    .innerJoin(scimGroups, eq(scimGroups.groupId, groups.id))
    .where(inArray(groupMembers.userId, [...userIds]))
    .orderBy(asc(groups.id));
}

/** Users of an enterprise whose person has proven an address: those that are members, and those that have left. */
export async function listUsersOfAddress(
  database: Database,
  enterpriseId: string,
  address: string,
): Promise<MemberRow[]> {
  const proves = sql`EXISTS (SELECT 1 FROM identities WHERE person_id = ${users.personId}
    AND email = ${address} AND email_verified = 1 AND (vouched_by IS NULL OR vouched_by = ${enterpriseId}))`;
  const isService = sql`EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${users.id})`;
  const rows = await database.read
    .select({ user: users })
    .from(users)
    .innerJoin(people, eq(people.id, users.personId))
    .where(
      and(eq(users.enterpriseId, enterpriseId), or(eq(people.verifiedEmail, address), proves), sql`NOT ${isService}`),
    )
    .orderBy(asc(users.id));
  return rows.map(({ user }) => user);
}

/** Whether the person of a user has a way to sign in. */
export async function hasIdentity(database: Database, personId: string): Promise<boolean> {
  const rows = await database.read
    .select({ id: identities.id })
    .from(identities)
    .where(eq(identities.personId, personId))
    .limit(1);
  return rows.length > 0;
}

/** The account that a directory created for an address and that nobody has signed in to yet. */
export async function findWaitingAccount(
  database: Database,
  enterpriseId: string,
  address: string,
): Promise<Account | null> {
  const rows = await selectAccounts(database)
    .innerJoin(scimUsers, eq(scimUsers.userId, users.id))
    .where(and(ofEnterprise(enterpriseId), eq(scimUsers.email, address), isNull(users.leftAt), IS_WAITING));
  return rows[0] ?? null;
}

const IS_WAITING = sql`NOT EXISTS (SELECT 1 FROM identities WHERE person_id = ${users.personId})`;

/** The condition that the account is still waiting for its first sign-in with this address. */
export function guardWaiting(userId: string, address: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM scim_users JOIN users ON users.id = scim_users.user_id
    WHERE users.id = ${userId} AND scim_users.email = ${address} AND suspended_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM identities WHERE person_id = users.person_id))`);
}

/** Whether the person of a user has no own way to sign in, and no other user: it stands for this user alone. */
const STANDS_ALONE = sql`NOT EXISTS (
    SELECT 1 FROM identities WHERE person_id = ${users.personId} AND vouched_by IS NULL)
  AND NOT EXISTS (SELECT 1 FROM users AS other WHERE other.person_id = ${users.personId} AND other.id <> ${users.id})`;

/**
 * Whether everybody who signs in as the user has this address by the word of the enterprise's provider. A directory can give a
 * user any address, so its word alone would hand a user who is in use, with its secrets, to whoever has proven that address.
 */
const signsInAs = (address: string): SQL => sql`NOT EXISTS (SELECT 1 FROM identities
    WHERE person_id = ${users.personId} AND (email IS NOT ${address} COLLATE NOCASE OR email_verified <> 1))`;

/** The user that a directory manages under an address, if a person who has proven the address may take it over. */
export async function findAdoptable(
  database: Database,
  enterpriseId: string,
  address: string,
): Promise<MemberRow | null> {
  const isOne = and(ofEnterprise(enterpriseId), eq(scimUsers.email, address), isNull(users.leftAt));
  return (await selectUsers(database).where(and(isOne, STANDS_ALONE, signsInAs(address))))[0]?.user ?? null;
}

/** Makes a directory's user a person's, with the identities that the enterprise vouches for. */
export function adoptUser(
  database: Database,
  { id, personId: before }: MemberRow,
  { personId, role, email }: { readonly personId: string; readonly role: MemberRow['role']; readonly email: string },
): Statement[] {
  const standsAlone = sql`EXISTS (SELECT 1 FROM users WHERE users.id = ${id} AND users.person_id = ${before}
    AND users.suspended_at IS NULL AND ${STANDS_ALONE} AND ${signsInAs(email)})`;
  return [
    ...guard(standsAlone),
    database.read.update(identities).set({ personId }).where(eq(identities.personId, before)),
    database.read.update(people).set({ verifiedEmail: null }).where(eq(people.id, before)),
    database.read.update(users).set({ personId, role }).where(eq(users.id, id)),
  ];
}

export async function countDirectoryUsers(database: Database, enterpriseId: string): Promise<number> {
  const rows = await database.read.select({ n: count() }).from(scimUsers).where(ofEnterprise(enterpriseId));
  return rows[0]?.n ?? 0;
}

export function putScimUser(database: Database, row: ScimUserRow): Statement {
  const { userId: _id, enterpriseId: _enterprise, createdAt: _created, ...changed } = row;
  return database.read.insert(scimUsers).values(row).onConflictDoUpdate({ target: scimUsers.userId, set: changed });
}

/** Sets what people see of a user. */
export function describeUser(
  database: Database,
  userId: string,
  shown: Pick<MemberRow, 'email' | 'displayName'>,
): Statement {
  return database.read.update(users).set(shown).where(eq(users.id, userId));
}

/** Moves the address of a person whom a directory created and who has no way to sign in yet; null if somebody has it. */
export function moveWaitingAddress(database: Database, personId: string, address: string): Statement {
  const isFree = sql`NOT EXISTS (SELECT 1 FROM people AS other WHERE other.verified_email = ${address} AND other.id <> ${personId})`;
  return database.read
    .update(people)
    .set({ verifiedEmail: sql`CASE WHEN ${isFree} THEN ${address} END` })
    .where(
      and(
        eq(people.id, personId),
        isNotNull(people.verifiedEmail),
        sql`NOT EXISTS (SELECT 1 FROM identities WHERE person_id = ${people.id})`,
      ),
    );
}

/** Those of the ids that are users whom the directory of the enterprise manages. */
export async function knownDirectoryUsers(
  database: Database,
  enterpriseId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.read
    .select({ id: scimUsers.userId })
    .from(scimUsers)
    .where(and(ofEnterprise(enterpriseId), isAmong(sql`${scimUsers.userId}`, ids)));
  return new Set(rows.map(({ id }) => id));
}

/** One parameter for any number of ids. */
export function isAmong(column: SQL, ids: readonly string[]): SQL {
  return sql`${column} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`;
}
