import { count, eq, inArray, and, isNull, sql } from 'drizzle-orm';
import type { Database, Statement } from '../database.ts';
import { type Leaving, takeAlong } from './departures.ts';
import {
  approvalRules,
  approvals,
  approvalVotes,
  auditDeadLetters,
  auditSinks,
  departedAddresses,
  enterpriseDomains,
  enterpriseOidc,
  enterprises,
  enterpriseSaml,
  groups,
  identities,
  invitations,
  joinRequests,
  mcpRules,
  people,
  requestMinutes,
  samlAnswers,
  scimTokens,
  serviceAccounts,
  users,
} from '../tables.ts';

/** The users of an enterprise, with what they and the enterprise own. */
export function allOfEnterprise(enterpriseId: string): Leaving {
  return {
    users: sql`(SELECT id FROM users WHERE enterprise_id = ${enterpriseId})`,
    owners: sql`(SELECT id FROM users WHERE enterprise_id = ${enterpriseId} UNION ALL SELECT ${enterpriseId})`,
  };
}

/** The number of people who have a user in the enterprise. */
export async function countMembers(database: Database, enterpriseId: string): Promise<number> {
  const isPerson = sql`NOT EXISTS (SELECT 1 FROM service_accounts WHERE user_id = ${users.id})`;
  const isMember = and(eq(users.enterpriseId, enterpriseId), isNull(users.leftAt), isPerson);
  return (await database.read.select({ n: count() }).from(users).where(isMember))[0]?.n ?? 0;
}

/**
 * Deletes what an enterprise and its users own, what they are signed in with, and how people join it. The rows of the
 * enterprise, its users, sidecars and tokens stay without a name or an address, ended, because the audit log names them.
 */
export function deleteEnterprise(database: Database, id: string, now: string): Statement[] {
  const { read } = database;
  const leaving = allOfEnterprise(id);
  const sinks = sql`(SELECT id FROM audit_sinks WHERE enterprise_id = ${id})`;
  const asked = sql`(SELECT id FROM approvals WHERE enterprise_id = ${id})`;
  const ended = { leftAt: sql`coalesce(left_at, ${now})`, suspendedAt: sql`coalesce(suspended_at, ${now})` };
  const nobody = { role: 'member' as const, email: null, displayName: DELETED_USER };
  const settings = {
    billingEmail: null,
    allowedDomains: '[]',
    allowedProviders: null,
    ssoRequired: sql<boolean>`0`,
    providerMcpClients: '[]',
  };
  return [
    ...takeAlong(database, leaving, now),
    read.delete(approvalVotes).where(inArray(approvalVotes.approvalId, asked)),
    read.delete(approvals).where(eq(approvals.enterpriseId, id)),
    read.delete(approvalRules).where(eq(approvalRules.enterpriseId, id)),
    read.delete(auditDeadLetters).where(inArray(auditDeadLetters.sinkId, sinks)),
    read.delete(auditSinks).where(eq(auditSinks.enterpriseId, id)),
    read.delete(serviceAccounts).where(eq(serviceAccounts.enterpriseId, id)),
    read
      .update(scimTokens)
      .set({ revokedAt: now })
      .where(and(eq(scimTokens.enterpriseId, id), isNull(scimTokens.revokedAt))),
    read.delete(joinRequests).where(eq(joinRequests.enterpriseId, id)),
    read.delete(invitations).where(eq(invitations.enterpriseId, id)),
    read.delete(departedAddresses).where(eq(departedAddresses.enterpriseId, id)),
    read.delete(enterpriseOidc).where(eq(enterpriseOidc.enterpriseId, id)),
    read.delete(enterpriseSaml).where(eq(enterpriseSaml.enterpriseId, id)),
    read.delete(samlAnswers).where(eq(samlAnswers.enterpriseId, id)),
    read.delete(mcpRules).where(eq(mcpRules.enterpriseId, id)),
    read.delete(requestMinutes).where(eq(requestMinutes.enterpriseId, id)),
    read.delete(enterpriseDomains).where(eq(enterpriseDomains.enterpriseId, id)),
    read.delete(identities).where(eq(identities.vouchedBy, id)),
    read
      .update(users)
      .set({ ...nobody, ...ended })
      .where(eq(users.enterpriseId, id)),
    read.delete(groups).where(eq(groups.enterpriseId, id)),
    forgetAddresses(database, id),
    read
      .update(enterprises)
      .set({ ...settings, name: DELETED_ENTERPRISE, slug: id, deletedAt: now })
      .where(eq(enterprises.id, id)),
  ];
}

/** The name of a user whose enterprise or account was deleted. */
export const DELETED_USER = 'Deleted user';
const DELETED_ENTERPRISE = 'Deleted enterprise';

/** The addresses of its people who have no other enterprise and no way of their own left, so that nobody could delete them. */
function forgetAddresses({ read }: Database, enterpriseId: string): Statement {
  const ofEnterprise = sql`${people.id} IN (SELECT person_id FROM users WHERE enterprise_id = ${enterpriseId})`;
  const hasWay = sql`SELECT 1 FROM identities WHERE person_id = ${people.id}`;
  const isElsewhere = sql`SELECT 1 FROM users WHERE person_id = ${people.id} AND left_at IS NULL`;
  return read
    .update(people)
    .set({ verifiedEmail: null })
    .where(and(ofEnterprise, sql`NOT EXISTS (${hasWay})`, sql`NOT EXISTS (${isElsewhere})`));
}
