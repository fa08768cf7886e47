import { and, count, desc, eq, gt, inArray, isNull, lt, notInArray, or, type SQL, sql } from 'drizzle-orm';
import type { EnterpriseRow } from '../accounts.ts';
import { type Database, guard, type Statement } from '../database.ts';
import { insertExpiring } from '../expiring_rows.ts';
import { enterpriseDomains, enterprises, identities, joinRequests, people, users } from '../tables.ts';

export type JoinRequestRow = typeof joinRequests.$inferSelect;

/** The addresses that a person has proven in ways of their own. */
export async function listProvenAddresses(database: Database, personId: string): Promise<string[]> {
  const [ofPerson, ofIdentities] = await Promise.all([
    database.read.select({ email: people.verifiedEmail }).from(people).where(eq(people.id, personId)),
    database.read
      .select({ email: identities.email })
      .from(identities)
      .where(and(eq(identities.personId, personId), isNull(identities.vouchedBy), eq(identities.emailVerified, true))),
  ]);
  const all = [...ofPerson, ...ofIdentities].flatMap(({ email }) => (email === null ? [] : [email.toLowerCase()]));
  return [...new Set(all)].toSorted();
}

/** An enterprise whose domain is one of these. */
export interface DomainOwner {
  readonly enterprise: EnterpriseRow;
  readonly domain: string;
}

/** The enterprises that have proven these domains, take requests, and have no user of this person. */
export async function listAskable(
  database: Database,
  personId: string,
  domains: readonly string[],
): Promise<DomainOwner[]> {
  if (domains.length === 0) return [];
  const own = database.read
    .select({ id: users.enterpriseId })
    .from(users)
    .where(and(eq(users.personId, personId), isNull(users.leftAt)));
  return database.read
    .select({ enterprise: enterprises, domain: enterpriseDomains.domain })
    .from(enterpriseDomains)
    .innerJoin(enterprises, eq(enterprises.id, enterpriseDomains.enterpriseId))
    .where(
      and(
        inArray(enterpriseDomains.domain, [...domains]),
        inArray(enterprises.domainJoining, ['automatic', 'request']),
        isNull(enterprises.deletedAt),
        notInArray(enterprises.id, own),
      ),
    )
    .orderBy(enterprises.id);
}

/** A person's newest request to an enterprise that is still kept. */
export async function findRequestOf(
  database: Database,
  personId: string,
  enterpriseId: string,
): Promise<JoinRequestRow | null> {
  const isOne = and(eq(joinRequests.personId, personId), eq(joinRequests.enterpriseId, enterpriseId));
  const rows = await database.read.select().from(joinRequests).where(isOne).orderBy(desc(joinRequests.id)).limit(1);
  return rows[0] ?? null;
}

/** A request to this enterprise. */
export async function findJoinRequest(
  database: Database,
  enterpriseId: string,
  id: string,
): Promise<JoinRequestRow | null> {
  const isOne = and(eq(joinRequests.id, id), eq(joinRequests.enterpriseId, enterpriseId));
  return (await database.read.select().from(joinRequests).where(isOne))[0] ?? null;
}

/** A request of this person, to whatever enterprise. */
export async function findOwnRequest(database: Database, personId: string, id: string): Promise<JoinRequestRow | null> {
  const isOne = and(eq(joinRequests.id, id), eq(joinRequests.personId, personId));
  return (await database.read.select().from(joinRequests).where(isOne))[0] ?? null;
}

/** The requests to an enterprise, newest first. */
export async function listJoinRequests(
  database: Database,
  page: { readonly enterpriseId: string; readonly after: string | null; readonly limit: number },
): Promise<JoinRequestRow[]> {
  const after = page.after === null ? undefined : lt(joinRequests.id, page.after);
  return database.read
    .select()
    .from(joinRequests)
    .where(and(eq(joinRequests.enterpriseId, page.enterpriseId), after))
    .orderBy(desc(joinRequests.id))
    .limit(page.limit);
}

/** How many requests to an enterprise wait for an admin. */
export async function countOpenRequests(database: Database, enterpriseId: string, nowSeconds: number): Promise<number> {
  const open = and(eq(joinRequests.enterpriseId, enterpriseId), isOpen(nowSeconds));
  return (await database.read.select({ n: count() }).from(joinRequests).where(open))[0]?.n ?? 0;
}

function isOpen(nowSeconds: number): SQL | undefined {
  return and(isNull(joinRequests.outcome), gt(joinRequests.endsAt, nowSeconds));
}

/** Stores a request, in place of one of the same person that ended, and deletes those that ended long ago. */
export function insertJoinRequest(database: Database, row: JoinRequestRow, nowSeconds: number): Statement[] {
  const isSame = and(eq(joinRequests.personId, row.personId), eq(joinRequests.enterpriseId, row.enterpriseId));
  return [
    ...guard(sql`NOT EXISTS (SELECT 1 FROM join_requests WHERE person_id = ${row.personId}
      AND enterprise_id = ${row.enterpriseId} AND outcome IS NULL AND ends_at > ${nowSeconds})`),
    database.read
      .delete(joinRequests)
      .where(and(isSame, or(lt(joinRequests.endsAt, nowSeconds), sql`outcome IS NOT NULL`))),
    ...insertExpiring(database, joinRequests, row, nowSeconds),
  ];
}

/** Ends a request; a conflict unless it is open. */
export function endJoinRequest(
  database: Database,
  id: string,
  { outcome, nowSeconds }: { readonly outcome: NonNullable<JoinRequestRow['outcome']>; readonly nowSeconds: number },
): Statement[] {
  return [
    ...guard(
      sql`EXISTS (SELECT 1 FROM join_requests WHERE id = ${id} AND outcome IS NULL AND ends_at > ${nowSeconds})`,
    ),
    database.read.update(joinRequests).set({ outcome }).where(eq(joinRequests.id, id)),
  ];
}
