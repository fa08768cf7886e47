import { and, eq, exists, inArray, isNull, ne, not, type SQL, sql } from 'drizzle-orm';
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core';
import type { Database, Statement } from './database.ts';
import { reaches } from './identities.ts';
import { browserSessions, deviceCodes, identities, mcpConnections, tokenFamilies, users } from './tables.ts';

/** The sign-ins that an enterprise allows. */
export interface AdmittedSignIns {
  readonly enterpriseId: string;
  /** The local user, whose sign-ins no rule ends. */
  readonly exemptUserId: string | null;
  /** Null: by every provider except `except`. */
  readonly providers: readonly string[] | null;
  readonly except: string | null;
  /** Domains of verified addresses; empty: any address. */
  readonly domains: readonly string[];
}

/** The sign-ins of users by a provider. */
interface SignInColumns {
  readonly userId: SQLiteColumn;
  readonly provider: SQLiteColumn;
}

/**
 * Ends the browser and program sign-ins and the MCP clients that an enterprise's rules no longer allow, and deletes such device
 * approvals that have not been used.
 */
export function endOtherSignIns(database: Database, admitted: AdmittedSignIns, now: string): Statement[] {
  const rules = (of: SignInColumns) => and(...allowedSignIns(database, of, admitted));
  const ended = (of: SignInColumns) => {
    const rule = rules(of);
    return rule === undefined ? sql`0` : and(isMember(database, of, admitted), not(rule));
  };
  return [
    database.read.delete(browserSessions).where(ended(browserSessions)),
    database.read
      .update(tokenFamilies)
      .set({ revokedAt: now })
      .where(and(isNull(tokenFamilies.revokedAt), ended(tokenFamilies))),
    database.read.delete(deviceCodes).where(ended(deviceCodes)),
    database.read
      .update(mcpConnections)
      .set({ revokedAt: now })
      .where(and(isNull(mcpConnections.revokedAt), ended(mcpConnections))),
  ];
}

function isMember(database: Database, { userId }: SignInColumns, admitted: AdmittedSignIns): SQL {
  const { enterpriseId, exemptUserId } = admitted;
  const others = exemptUserId === null ? undefined : ne(users.id, exemptUserId);
  const members = database.read
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.enterpriseId, enterpriseId), others));
  return inArray(userId, members);
}

function allowedSignIns(database: Database, of: SignInColumns, { providers, except, domains }: AdmittedSignIns): SQL[] {
  const named = providers === null ? [] : [inArray(of.provider, [...providers])];
  const others = providers !== null || except === null ? [] : [ne(of.provider, except)];
  return [...named, ...others, ...(domains.length === 0 ? [] : [hasAddressOf(database, of, domains)])];
}

/** Whether the user has signed in by this provider with a verified address of one of the domains. */
function hasAddressOf(database: Database, of: SignInColumns, domains: readonly string[]): SQL {
  const domain = sql`lower(substr(${identities.email}, instr(${identities.email}, '@') + 1))`;
  const isSame = and(eq(users.id, of.userId), eq(identities.provider, of.provider));
  const isVerified = sql`${identities.emailVerified} = 1`;
  const found = database.read
    .select({ id: identities.id })
    .from(identities)
    .innerJoin(users, eq(users.personId, identities.personId))
    .where(and(isSame, isVerified, reaches(users.enterpriseId), inArray(domain, [...domains])));
  return exists(found);
}
