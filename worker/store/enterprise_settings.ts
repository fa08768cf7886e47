import { and, eq, inArray, notInArray, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from './database.ts';
import { enterpriseDomains, enterpriseOidc, enterprises, identities, people, users } from './tables.ts';
import type { Account, EnterpriseRow } from './accounts.ts';
import { type IdentityRow, reaches } from './identities.ts';

export type EnterpriseOidcRow = typeof enterpriseOidc.$inferSelect;

export async function findEnterprise(database: Database, id: string): Promise<EnterpriseRow | null> {
  const rows = await database.read.select().from(enterprises).where(eq(enterprises.id, id));
  return rows[0] ?? null;
}

export async function findEnterpriseOidc(database: Database, enterpriseId: string): Promise<EnterpriseOidcRow | null> {
  const rows = await database.read.select().from(enterpriseOidc).where(eq(enterpriseOidc.enterpriseId, enterpriseId));
  return rows[0] ?? null;
}

/** The own OpenID providers with this issuer, of any enterprise. A host may be written with a slash behind it, or without. */
export async function listOidcOfIssuer(database: Database, issuer: string): Promise<EnterpriseOidcRow[]> {
  return database.read.select().from(enterpriseOidc).where(isWritten(issuer));
}

function isWritten(issuer: string): SQL {
  const bare = issuer.replace(/\/$/, '');
  return inArray(enterpriseOidc.issuer, [bare, `${bare}/`]);
}

/** A user whom the own OpenID provider of its enterprise has signed in, with the issuer that is set there now. */
export interface ProviderMember {
  readonly account: Account;
  readonly identity: IdentityRow;
  readonly issuer: string;
}

/** The users, in all enterprises, whom their enterprise's own provider has signed in as this subject of this issuer. */
export async function listProviderMembers(
  database: Database,
  { issuer, subject }: Pick<IdentityRow, 'issuer' | 'subject'>,
): Promise<ProviderMember[]> {
  const isOwn = and(
    eq(identities.personId, users.personId),
    eq(identities.provider, users.enterpriseId),
    eq(identities.vouchedBy, users.enterpriseId),
  );
  // With the enterprises by name, the identities are found by their primary key. Otherwise those of everybody are read.
  const having = database.read
    .select({ id: enterpriseOidc.enterpriseId })
    .from(enterpriseOidc)
    .where(isWritten(issuer));
  const isSubject = and(eq(identities.issuer, issuer), eq(identities.subject, subject));
  const rows = await database.read
    .select({
      user: users,
      person: people,
      enterprise: enterprises,
      identity: identities,
      issuer: enterpriseOidc.issuer,
    })
    .from(users)
    .innerJoin(people, eq(people.id, users.personId))
    .innerJoin(enterprises, eq(enterprises.id, users.enterpriseId))
    .innerJoin(identities, isOwn)
    .innerJoin(enterpriseOidc, eq(enterpriseOidc.enterpriseId, users.enterpriseId))
    .where(and(inArray(identities.provider, having), isSubject));
  return rows.map(({ user, person, enterprise, identity, issuer: set }) => ({
    account: { user, person, enterprise },
    identity,
    issuer: set,
  }));
}

/** The domains of an enterprise, by name. */
export async function listDomains(database: Database, enterpriseId: string): Promise<string[]> {
  const rows = await database.read
    .select({ domain: enterpriseDomains.domain })
    .from(enterpriseDomains)
    .where(eq(enterpriseDomains.enterpriseId, enterpriseId))
    .orderBy(enterpriseDomains.domain);
  return rows.map(({ domain }) => domain);
}

/** The enterprise that has proven a domain to be its own; null if none has. */
export async function findEnterpriseOfDomain(database: Database, domain: string): Promise<EnterpriseRow | null> {
  const rows = await database.read
    .select({ enterprise: enterprises })
    .from(enterpriseDomains)
    .innerJoin(enterprises, eq(enterprises.id, enterpriseDomains.enterpriseId))
    .where(eq(enterpriseDomains.domain, domain));
  return rows[0]?.enterprise ?? null;
}

/** The identities that sign in to a user. */
export async function listIdentities(database: Database, userId: string): Promise<IdentityRow[]> {
  const rows = await database.read
    .select({ identity: identities })
    .from(identities)
    .innerJoin(users, eq(users.personId, identities.personId))
    .where(and(eq(users.id, userId), reaches(users.enterpriseId)));
  return rows.map(({ identity }) => identity);
}

export type EnterpriseChange = Pick<
  EnterpriseRow,
  | 'name'
  | 'billingEmail'
  | 'allowedDomains'
  | 'allowedProviders'
  | 'ssoRequired'
  | 'domainJoining'
  | 'providerMcpClients'
>;

export function updateEnterprise(database: Database, id: string, change: EnterpriseChange): Statement {
  // `write` accepts no booleans.
  const ssoRequired = sql<boolean>`${change.ssoRequired ? 1 : 0}`;
  return database.read
    .update(enterprises)
    .set({ ...change, ssoRequired })
    .where(eq(enterprises.id, id));
}

export function deleteEnterpriseOidc(database: Database, enterpriseId: string): Statement {
  return database.read.delete(enterpriseOidc).where(eq(enterpriseOidc.enterpriseId, enterpriseId));
}

export function putEnterpriseOidc(database: Database, row: EnterpriseOidcRow): Statement[] {
  return [deleteEnterpriseOidc(database, row.enterpriseId), database.read.insert(enterpriseOidc).values(row)];
}

/** A domain that was proven, and its previous enterprise. */
export interface ProvenDomain {
  readonly domain: string;
  readonly holder: string | null;
}

/**
 * Sets an enterprise's domains; a conflict if one has changed its enterprise since it was read. The addresses that an
 * enterprise claimed by a domain go with the domain.
 */
export function setDomains(
  database: Database,
  enterpriseId: string,
  domains: { readonly all: readonly string[]; readonly proven: readonly ProvenDomain[]; readonly provenAt: string },
): Statement[] {
  const { all, proven, provenAt } = domains;
  const left = all.length === 0 ? undefined : notInArray(enterpriseDomains.domain, [...all]);
  const leaving = and(eq(enterpriseDomains.enterpriseId, enterpriseId), left);
  return [
    releaseAddresses(database, enterpriseId, leaving),
    database.read.delete(enterpriseDomains).where(leaving),
    ...proven.flatMap(({ domain, holder }) => [
      ...(holder === null
        ? []
        : [
            releaseAddresses(database, holder, isHeld(domain, holder)),
            database.read.delete(enterpriseDomains).where(isHeld(domain, holder)),
          ]),
      database.read.insert(enterpriseDomains).values({ domain, enterpriseId, provenAt }),
    ]),
  ];
}

/**
 * Forgets the addresses of people that only an enterprise's directory or provider named, in these domains of it. Otherwise
 * the first own sign-in with such an address would come to the user here, whose domain it no longer is.
 */
function releaseAddresses({ read }: Database, enterpriseId: string, ofDomains: SQL | undefined): Statement {
  const isNamedHere = sql`${people.id} IN (SELECT person_id FROM users WHERE enterprise_id = ${enterpriseId} AND (
      EXISTS (SELECT 1 FROM scim_users WHERE user_id = users.id)
      OR EXISTS (SELECT 1 FROM identities WHERE person_id = users.person_id AND vouched_by = ${enterpriseId})))`;
  const hasOwnWay = sql`SELECT 1 FROM identities WHERE person_id = ${people.id} AND vouched_by IS NULL`;
  const domain = sql`substr(${people.verifiedEmail}, instr(${people.verifiedEmail}, '@') + 1)`;
  const domains = read.select({ domain: enterpriseDomains.domain }).from(enterpriseDomains).where(ofDomains);
  return read
    .update(people)
    .set({ verifiedEmail: null })
    .where(and(isNamedHere, sql`NOT EXISTS (${hasOwnWay})`, inArray(domain, domains)));
}

function isHeld(domain: string, holder: string) {
  return and(eq(enterpriseDomains.domain, domain), eq(enterpriseDomains.enterpriseId, holder));
}

/** True while a domain belongs to this enterprise: the condition of joining by it. */
export function domainStillOf(domain: string, enterpriseId: string): Statement[] {
  return guard(
    sql`EXISTS (SELECT 1 FROM enterprise_domains WHERE domain = ${domain} AND enterprise_id = ${enterpriseId})`,
  );
}
