import { and, count, eq, gt, inArray, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { Database, Statement } from '../database.ts';
import { type MemberRow, changeMember, signOutUsers } from '../members.ts';
import {
  approvalGrants,
  approvalViews,
  bindingCredentials,
  browserSessions,
  connectorCredentials,
  connectors,
  connectorVersions,
  groupMembers,
  hostBindings,
  mcpConnections,
  mcpDisconnected,
  mcpHealth,
  mcpReferences,
  mcpServerRevisions,
  mcpServers,
  oauthFlows,
  pendingLogins,
  personalTokens,
  savedViews,
  secrets,
  shares,
  sidecars,
  signInLinks,
  tokenFamilies,
  clientCertificates,
  tunnelHosts,
  users,
} from '../tables.ts';

/** How much of a kind leaves with a user. */
interface Departing {
  readonly secrets: number;
  readonly host_bindings: number;
  readonly tunnel_hosts: number;
  readonly client_certificates: number;
  readonly connectors: number;
  readonly mcp_servers: number;
  readonly tokens: number;
  readonly sidecars: number;
  readonly sign_ins: number;
  readonly mcp_clients: number;
  /** What it shares with others. */
  readonly shares: number;
  readonly groups: number;
}

/** Users, and the owners of what goes with them, as lists of ids. */
export interface Leaving {
  readonly users: SQL;
  readonly owners: SQL;
}

/** One user, with what is its own. */
export function onlyUser(userId: string): Leaving {
  return { users: sql`(${userId})`, owners: sql`(${userId})` };
}

/** Counts what the owners have, and what is signed in as the users. */
export async function countDeparting(
  database: Database,
  { users: userIds, owners }: Leaving,
  nowSeconds: number,
): Promise<Departing> {
  const counted = async (table: SQLiteTable, of: SQL | undefined) =>
    (await database.read.select({ n: count() }).from(table).where(of))[0]?.n ?? 0;
  const owned = (table: SQLiteTable & { readonly ownerId: SQLiteColumn }) =>
    counted(table, inArray(table.ownerId, owners));
  const live = (table: Revocable) => counted(table, and(inArray(table.userId, userIds), isNull(table.revokedAt)));
  const browsers = and(inArray(browserSessions.userId, userIds), gt(browserSessions.expiresAt, nowSeconds));
  return {
    secrets: await owned(secrets),
    host_bindings: await owned(hostBindings),
    tunnel_hosts: await owned(tunnelHosts),
    client_certificates: await owned(clientCertificates),
    connectors: await owned(connectors),
    mcp_servers: await owned(mcpServers),
    tokens: await live(personalTokens),
    sidecars: await counted(sidecars, and(inArray(sidecars.userId, userIds), hasNotEnded(nowSeconds))),
    sign_ins: (await counted(browserSessions, browsers)) + (await live(tokenFamilies)),
    mcp_clients: await live(mcpConnections),
    shares: await owned(shares),
    groups: await counted(groupMembers, inArray(groupMembers.userId, userIds)),
  };
}

/** The sidecar of a job ends by itself. */
function hasNotEnded(nowSeconds: number): SQL | undefined {
  const now = new Date(nowSeconds * 1000).toISOString();
  return and(isNull(sidecars.revokedAt), or(isNull(sidecars.expiresAt), gt(sidecars.expiresAt, now)));
}

type Revocable = SQLiteTable & { readonly userId: SQLiteColumn; readonly revokedAt: SQLiteColumn };

/**
 * Takes a user out of its enterprise: deletes what is its own, and ends its sign-ins, tokens and sidecars. The row of the
 * user stays, suspended: it keeps the person from joining by a proven domain, and the audit log names it. A conflict if
 * no owner would be left who can sign in.
 */
export function depart(database: Database, member: MemberRow, now: string): Statement[] {
  const { id } = member;
  return [
    ...changeMember(database, member, { role: 'member', suspendedAt: member.suspendedAt ?? now }),
    database.read.update(users).set({ leftAt: now, email: null }).where(eq(users.id, id)),
    ...takeAlong(database, onlyUser(id), now),
  ];
}

/** Deletes what the owners have and what the users were allowed, and ends the users' sign-ins, tokens and sidecars. */
export function takeAlong(database: Database, leaving: Leaving, now: string): Statement[] {
  return [...deleteOwned(database, leaving), ...endAccess(database, leaving, now)];
}

/** Ends what the users were allowed, their sign-ins, personal tokens and sidecars; what is theirs stays. */
export function endAccess(database: Database, { users: userIds }: Pick<Leaving, 'users'>, now: string): Statement[] {
  return [
    database.read.delete(approvalGrants).where(inArray(approvalGrants.userId, userIds)),
    database.read.delete(approvalViews).where(inArray(approvalViews.userId, userIds)),
    database.read.delete(signInLinks).where(inArray(signInLinks.userId, userIds)),
    database.read
      .update(personalTokens)
      .set({ revokedAt: now })
      .where(and(inArray(personalTokens.userId, userIds), isNull(personalTokens.revokedAt))),
    ...signOutUsers(database, userIds, now),
  ];
}

function deleteOwned({ read }: Database, { users: userIds, owners }: Leaving): Statement[] {
  const servers = sql`(SELECT id FROM mcp_servers WHERE owner_id IN ${owners})`;
  const own = sql`(SELECT id FROM connectors WHERE owner_id IN ${owners})`;
  return [
    read.delete(bindingCredentials).where(inArray(bindingCredentials.ownerId, owners)),
    read.delete(hostBindings).where(inArray(hostBindings.ownerId, owners)),
    read.delete(tunnelHosts).where(inArray(tunnelHosts.ownerId, owners)),
    read.delete(clientCertificates).where(inArray(clientCertificates.ownerId, owners)),
    read.delete(mcpReferences).where(inArray(mcpReferences.ownerId, owners)),
    read.delete(mcpServerRevisions).where(inArray(mcpServerRevisions.serverId, servers)),
    read.delete(mcpHealth).where(inArray(mcpHealth.serverId, servers)),
    read.delete(mcpServers).where(inArray(mcpServers.ownerId, owners)),
    read.delete(connectorVersions).where(inArray(connectorVersions.connectorId, own)),
    read.delete(connectorCredentials).where(inArray(connectorCredentials.ownerId, owners)),
    read.delete(connectors).where(inArray(connectors.ownerId, owners)),
    read.delete(oauthFlows).where(inArray(oauthFlows.userId, userIds)),
    read.delete(pendingLogins).where(inArray(pendingLogins.userId, userIds)),
    read.delete(savedViews).where(inArray(savedViews.userId, userIds)),
    read.delete(mcpDisconnected).where(inArray(mcpDisconnected.userId, userIds)),
    read.delete(secrets).where(inArray(secrets.ownerId, owners)),
  ];
}

/** Takes a user who left back in. */
export function takeBack(
  database: Database,
  userId: string,
  as: Pick<MemberRow, 'role' | 'email' | 'displayName'>,
): Statement {
  const back = { ...as, leftAt: null, suspendedAt: null };
  return database.read.update(users).set(back).where(eq(users.id, userId));
}
