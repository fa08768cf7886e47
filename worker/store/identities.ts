import { and, asc, desc, eq, exists, gt, inArray, isNull, ne, or, type SQL, sql } from 'drizzle-orm';
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core';
import { type Database, guard, type Statement } from './database.ts';
import {
  browserSessions,
  deviceCodes,
  enterprises,
  identities,
  mcpConnections,
  passwords,
  people,
  tokenFamilies,
  users,
} from './tables.ts';
import { type Account, personOf, selectAccounts, usersOfPerson } from './accounts.ts';

export type IdentityRow = typeof identities.$inferSelect;

/** The permanent key of an identity. */
export type IdentityKey = Pick<IdentityRow, 'provider' | 'issuer' | 'subject'>;

/** The accounts that an identity signs in to, the newest first; empty if it never signed in. */
export async function listAccountsOfIdentity(database: Database, key: IdentityKey): Promise<Account[]> {
  return selectAccounts(database)
    .innerJoin(identities, eq(identities.personId, users.personId))
    .where(and(isIdentity(key), reaches(users.enterpriseId)))
    .orderBy(desc(users.id));
}

/** The enterprise that vouches for an identity; null if it is the person's own, or not known. */
export async function findVoucher(database: Database, key: IdentityKey): Promise<string | null> {
  const rows = await database.read.select({ vouchedBy: identities.vouchedBy }).from(identities).where(isIdentity(key));
  return rows[0]?.vouchedBy ?? null;
}

/** The accounts of a person, the newest first, with those that left. */
export async function listAccountsOfPerson(database: Database, personId: string): Promise<Account[]> {
  return selectAccounts(database).where(eq(users.personId, personId)).orderBy(desc(users.id));
}

/** The accounts of the person with this address, the newest first. `address` is lower-case. */
export async function listAccountsByVerifiedEmail(database: Database, address: string): Promise<Account[]> {
  return selectAccounts(database).where(eq(people.verifiedEmail, address)).orderBy(desc(users.id));
}

/**
 * The accounts in an enterprise of the people whom its own provider named with a verified address, whichever provider that was then;
 * the newest first. `address` is lower-case.
 */
export async function listAccountsNamedBy(database: Database, voucher: string, address: string): Promise<Account[]> {
  return selectAccounts(database)
    .where(and(eq(users.enterpriseId, voucher), sql`EXISTS (${namedBy(voucher, address)})`))
    .orderBy(desc(users.id));
}

/** The identities of a user that its enterprise's own provider named with a verified address. */
function namedBy(voucher: string, address: string): SQL {
  return sql`SELECT 1 FROM identities WHERE person_id = users.person_id AND provider = ${voucher} AND vouched_by = ${voucher}
    AND email = ${address} AND email_verified = 1`;
}

/** True if the user exists, is not suspended and its enterprise's own provider named it with this address. */
export function guardNamed(userId: string, voucher: string, address: string): Statement[] {
  return guard(
    sql`EXISTS (SELECT 1 FROM users WHERE id = ${userId} AND enterprise_id = ${voucher} AND suspended_at IS NULL
      AND EXISTS (${namedBy(voucher, address)}))`,
  );
}

export async function isSlugTaken(database: Database, slug: string): Promise<boolean> {
  const rows = await database.read.select({ id: enterprises.id }).from(enterprises).where(eq(enterprises.slug, slug));
  return rows.length > 0;
}

export function insertIdentity(database: Database, row: IdentityRow): Statement {
  return database.read.insert(identities).values(row);
}

/** Records a sign-in of an identity, with its current address. */
export function touchIdentity(
  database: Database,
  key: IdentityKey,
  now: Pick<IdentityRow, 'email' | 'emailVerified' | 'lastSignInAt'>,
): Statement {
  // `write` accepts no booleans.
  const verified = sql<boolean>`${now.emailVerified ? 1 : 0}`;
  return database.read
    .update(identities)
    .set({ ...now, emailVerified: verified })
    .where(isIdentity(key));
}

/**
 * Sets a person's address to that of one of its identities, if the person has none, nobody else has this one, and the
 * identity is the person's own. An enterprise's provider sets no address: whoever proves it signs in to all of the
 * person's users.
 */
export function claimVerifiedEmail(
  database: Database,
  personId: string,
  { key, address }: { readonly key: IdentityKey; readonly address: string },
): Statement {
  const isOwn = exists(
    database.read
      .select({ id: identities.id })
      .from(identities)
      .where(and(isIdentity(key), isNull(identities.vouchedBy))),
  );
  const isFree = sql`NOT EXISTS (SELECT 1 FROM people AS other WHERE other.verified_email = ${address})`;
  return database.read
    .update(people)
    .set({ verifiedEmail: address })
    .where(and(eq(people.id, personId), isNull(people.verifiedEmail), isFree, isOwn));
}

/** True if the user exists, is not suspended and its person has this address: the condition of joining by email. */
export function guardJoinable(userId: string, address: string): Statement[] {
  return guard(
    sql`EXISTS (SELECT 1 FROM users JOIN people ON people.id = users.person_id
      WHERE users.id = ${userId} AND people.verified_email = ${address} AND suspended_at IS NULL)`,
  );
}

/** Whether some person has proven an address. `address` is lower-case. */
export async function isProvenAddress(database: Database, address: string): Promise<boolean> {
  const rows = await database.read
    .select({ id: people.id })
    .from(people)
    .leftJoin(identities, eq(identities.personId, people.id))
    .where(or(eq(people.verifiedEmail, address), isOwnProof(address)))
    .limit(1);
  return rows.length > 0;
}

/** The identities that prove an address and are their person's own. */
function isOwnProof(address: string): SQL | undefined {
  return and(isNull(identities.vouchedBy), eq(identities.emailVerified, true), eq(identities.email, address));
}

/** Whether a person has proven an address: it is the person's, or that of an own identity. `address` is lower-case. */
export async function hasProven(database: Database, personId: string, address: string): Promise<boolean> {
  const [ofPerson, ofIdentities] = await Promise.all([
    database.read
      .select({ id: people.id })
      .from(people)
      .where(and(eq(people.id, personId), eq(people.verifiedEmail, address))),
    database.read
      .select({ id: identities.id })
      .from(identities)
      .where(and(eq(identities.personId, personId), isOwnProof(address))),
  ]);
  return ofPerson.length + ofIdentities.length > 0;
}

/** True for identities that sign in to a user of this enterprise. */
export function reaches(enterpriseId: string | SQLiteColumn): SQL | undefined {
  return or(isNull(identities.vouchedBy), eq(identities.vouchedBy, enterpriseId));
}

/**
 * The identities that sign in to a user, oldest first; only those that an enterprise vouches for, if one is given.
 */
export async function listIdentityRows(
  database: Database,
  page: {
    readonly user: { readonly userId: string; readonly enterpriseId: string };
    readonly voucher: string | null;
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<IdentityRow[]> {
  const { user, voucher } = page;
  const after = page.after === null ? undefined : gt(identities.id, page.after);
  const reach = voucher === null ? reaches(user.enterpriseId) : eq(identities.vouchedBy, voucher);
  return database.read
    .select()
    .from(identities)
    .where(and(eq(identities.personId, personOf(user.userId)), reach, after))
    .orderBy(asc(identities.id))
    .limit(page.limit);
}

/** True while a user is signed in with this browser session. */
export function guardSignedIn(
  { userId, session }: { readonly userId: string; readonly session: string },
  nowSeconds: number,
): Statement[] {
  const lives = sql`SELECT 1 FROM browser_sessions JOIN users ON users.id = browser_sessions.user_id
    WHERE token_hash = ${session} AND user_id = ${userId} AND expires_at > ${nowSeconds} AND suspended_at IS NULL`;
  return guard(sql`EXISTS (${lives})`);
}

/** Deletes an identity, and the password of its address if it is one. */
export function deleteIdentity(database: Database, { id, provider, subject }: IdentityRow): Statement[] {
  const ofPassword =
    provider === 'password' ? [database.read.delete(passwords).where(eq(passwords.email, subject))] : [];
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM identities WHERE id = ${id})`),
    database.read.delete(identities).where(eq(identities.id, id)),
    ...ofPassword,
  ];
}

/**
 * Ends the browser and program sign-ins by a provider, except one, and the MCP clients connected in these, for every
 * user of this user's person that the removed identity signs in to.
 */
export function endSignInsBy(
  database: Database,
  by: {
    readonly userId: string;
    readonly provider: string;
    readonly vouchedBy: string | null;
    readonly except: string;
    readonly now: string;
  },
): Statement[] {
  const { userId, provider, vouchedBy, except, now } = by;
  const userIds = vouchedBy === null ? usersOfPerson(userId) : sql`(${userId})`;
  const ofBrowsers = and(inArray(browserSessions.userId, userIds), eq(browserSessions.provider, provider));
  const ofPrograms = and(inArray(tokenFamilies.userId, userIds), eq(tokenFamilies.provider, provider));
  const ofMcpClients = and(inArray(mcpConnections.userId, userIds), eq(mcpConnections.provider, provider));
  return [
    database.read.delete(browserSessions).where(and(ofBrowsers, ne(browserSessions.tokenHash, except))),
    database.read
      .update(tokenFamilies)
      .set({ revokedAt: now })
      .where(and(ofPrograms, ne(tokenFamilies.id, except), isNull(tokenFamilies.revokedAt))),
    database.read
      .delete(deviceCodes)
      .where(and(inArray(deviceCodes.userId, userIds), eq(deviceCodes.provider, provider))),
    database.read
      .update(mcpConnections)
      .set({ revokedAt: now })
      .where(and(ofMcpClients, isNull(mcpConnections.revokedAt))),
  ];
}

function isIdentity({ provider, issuer, subject }: IdentityKey) {
  return and(eq(identities.provider, provider), eq(identities.issuer, issuer), eq(identities.subject, subject));
}
