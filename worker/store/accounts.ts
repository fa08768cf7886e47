import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { enterprises, people, users } from './tables.ts';

type UserRow = typeof users.$inferSelect;
type PersonRow = typeof people.$inferSelect;
export type EnterpriseRow = typeof enterprises.$inferSelect;

/** A user with its person and its enterprise. */
export interface Account {
  readonly user: UserRow;
  readonly person: PersonRow;
  readonly enterprise: EnterpriseRow;
}

export async function findAccount(database: Database, userId: string): Promise<Account | null> {
  const rows = await selectAccounts(database).where(eq(users.id, userId));
  return rows[0] ?? null;
}

/** The query of accounts, for a condition. */
export function selectAccounts(database: Database) {
  return database.read
    .select({ user: users, person: people, enterprise: enterprises })
    .from(users)
    .innerJoin(people, eq(people.id, users.personId))
    .innerJoin(enterprises, eq(enterprises.id, users.enterpriseId));
}

/** The person of a user. */
export function personOf(userId: string): SQL<string> {
  return sql<string>`(SELECT person_id FROM users WHERE id = ${userId})`;
}

/** The ids of the users of this user's person, itself included. */
export function usersOfPerson(userId: string): SQL {
  return sql`(SELECT id FROM users WHERE person_id = ${personOf(userId)})`;
}

/** The fields of a new person's user; omitted ones get their defaults. */
interface NewUser {
  readonly person: typeof people.$inferInsert;
  readonly user: Omit<typeof users.$inferInsert, 'personId' | 'verifiedEmail'>;
}

/** The same with its own enterprise. */
interface NewAccount extends NewUser {
  readonly enterprise: typeof enterprises.$inferInsert;
}

export function insertAccount(database: Database, account: NewAccount): Statement[] {
  return [insertEnterprise(database, account.enterprise), ...insertUser(database, account)];
}

export function insertEnterprise(database: Database, enterprise: NewAccount['enterprise']): Statement {
  return database.read.insert(enterprises).values(enterprise);
}

/** Inserts a user who is a new person. */
export function insertUser(database: Database, { person, user }: NewUser): Statement[] {
  return [
    database.read.insert(people).values(person),
    database.read.insert(users).values({ ...user, personId: person.id }),
  ];
}

/** Inserts a user of a person who is known; a conflict if the person has one in this enterprise. */
export function insertUserOf(database: Database, personId: string, user: NewUser['user']): Statement {
  return database.read.insert(users).values({ ...user, personId });
}

/**
 * The version of a user's newest snapshot: the sum of the enterprise's and the user's change counts. Both only grow, so
 * the sum grows with each change.
 */
export async function policyVersion(database: Database, userId: string): Promise<number> {
  const rows = await database.read
    .select({ version: sql<number>`${users.policyVersion} + ${enterprises.policyVersion}` })
    .from(users)
    .innerJoin(enterprises, eq(enterprises.id, users.enterpriseId))
    .where(eq(users.id, userId));
  return rows[0]?.version ?? 0;
}

/** The same for an account that was read. */
export function policyVersionOf({ user, enterprise }: Account): number {
  return user.policyVersion + enterprise.policyVersion;
}

/** Marks the policy of an owner (a user or an enterprise) as changed. */
export function bumpPolicy(database: Database, owner: { ownerId: string; enterpriseId: string }): Statement {
  const { ownerId, enterpriseId } = owner;
  if (ownerId === enterpriseId) {
    const version = sql`${enterprises.policyVersion} + 1`;
    return database.read.update(enterprises).set({ policyVersion: version }).where(eq(enterprises.id, enterpriseId));
  }
  return database.read
    .update(users)
    .set({ policyVersion: sql`${users.policyVersion} + 1` })
    .where(and(eq(users.id, ownerId), eq(users.enterpriseId, enterpriseId)));
}
