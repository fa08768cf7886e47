import { and, asc, desc, eq, gt, inArray, isNull, ne, sql } from 'drizzle-orm';
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

/** The accounts of an identity's person, the newest first; empty if the identity never signed in. */
export async function listAccountsOfIdentity(database: Database, key: IdentityKey): Promise<Account[]> {
  return selectAccounts(database)
    .innerJoin(identities, eq(identities.personId, users.personId))
    .where(isIdentity(key))
    .orderBy(desc(users.id));
}

/** The accounts of the person with this address, the newest first. `address` is lower-case. */
export async function listAccountsByVerifiedEmail(database: Database, address: string): Promise<Account[]> {
  return selectAccounts(database).where(eq(people.verifiedEmail, address)).orderBy(desc(users.id));
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

/** Sets a person's address, if it has none and nobody else has this one. */
export function claimVerifiedEmail(database: Database, personId: string, address: string): Statement {
  const isFree = sql`NOT EXISTS (SELECT 1 FROM people AS other WHERE other.verified_email = ${address})`;
  return database.read
    .update(people)
    .set({ verifiedEmail: address })
    .where(and(eq(people.id, personId), isNull(people.verifiedEmail), isFree));
}

/** True if the user exists, is not suspended and its person has this address: the condition of joining by email. */
export function guardJoinable(userId: string, address: string): Statement[] {
  return guard(
    sql`EXISTS (SELECT 1 FROM users JOIN people ON people.id = users.person_id
      WHERE users.id = ${userId} AND people.verified_email = ${address} AND suspended_at IS NULL)`,
  );
}

/** The identities of a user's person, oldest first. */
export async function listIdentityRows(
  database: Database,
  page: { readonly userId: string; readonly after: string | null; readonly limit: number },
): Promise<IdentityRow[]> {
  const after = page.after === null ? undefined : gt(identities.id, page.after);
  return database.read
    .select()
    .from(identities)
    .where(and(eq(identities.personId, personOf(page.userId)), after))
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
 * user of this user's person: an identity signs in to each of them.
 */
export function endSignInsBy(
  database: Database,
  by: { readonly userId: string; readonly provider: string; readonly except: string; readonly now: string },
): Statement[] {
  const { userId, provider, except, now } = by;
  const userIds = usersOfPerson(userId);
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
