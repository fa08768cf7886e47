import { and, eq, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { DELETED_USER } from './enterprise_deletion.ts';
import { departedAddresses, identities, joinRequests, passwords, people, users } from '../tables.ts';

export type DepartedAddress = typeof departedAddresses.$inferSelect;

/** True while the person has no other user than this one who has not left. */
export function guardOnlyUserOfPerson(personId: string, userId: string): Statement[] {
  return guard(
    sql`NOT EXISTS (SELECT 1 FROM users WHERE person_id = ${personId} AND id <> ${userId} AND left_at IS NULL)`,
  );
}

/** True while a user is suspended and has not left. */
export function guardSuspended(userId: string): Statement[] {
  return guard(sql`EXISTS (SELECT 1 FROM users WHERE id = ${userId} AND suspended_at IS NOT NULL AND left_at IS NULL)`);
}

/** True while an enterprise has no other user than this one who has not left. */
export function guardOnlyMember(enterpriseId: string, userId: string): Statement[] {
  return guard(
    sql`NOT EXISTS (SELECT 1 FROM users WHERE enterprise_id = ${enterpriseId} AND id <> ${userId} AND left_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = users.id))`,
  );
}

/**
 * Deletes what proves who a person is: identities, the password and the address. The rows of its users stay without a
 * name, because audit logs name them.
 */
export function deletePerson({ read }: Database, personId: string, departed: readonly DepartedAddress[]): Statement[] {
  const ofPassword = sql`${passwords.email} IN (
    SELECT subject FROM identities WHERE person_id = ${personId} AND provider = 'password')`;
  // The triggers clear the copy of the person's address only in its first user.
  const unnamed = { email: null, displayName: DELETED_USER, verifiedEmail: null };
  return [
    ...departed.map((row) => read.insert(departedAddresses).values(row).onConflictDoNothing()),
    read.delete(joinRequests).where(eq(joinRequests.personId, personId)),
    read.delete(passwords).where(ofPassword),
    read.delete(identities).where(eq(identities.personId, personId)),
    read.update(people).set({ verifiedEmail: null }).where(eq(people.id, personId)),
    read.update(users).set(unnamed).where(eq(users.personId, personId)),
  ];
}

/** Whether somebody with this address left the enterprise, and then deleted the account. */
export async function hasDeparted(
  { read }: Database,
  { enterpriseId, addressHash }: DepartedAddress,
): Promise<boolean> {
  return (await read.select().from(departedAddresses).where(isAddress({ enterpriseId, addressHash }))).length > 0;
}

/** An invitation takes somebody back. */
export function forgetDeparted({ read }: Database, address: DepartedAddress): Statement {
  return read.delete(departedAddresses).where(isAddress(address));
}

function isAddress({ enterpriseId, addressHash }: DepartedAddress) {
  return and(eq(departedAddresses.enterpriseId, enterpriseId), eq(departedAddresses.addressHash, addressHash));
}
