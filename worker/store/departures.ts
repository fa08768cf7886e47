import { and, count, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { Database, Statement } from './database.ts';
import { type MemberRow, changeMember, signOutEverywhere } from './members.ts';
import {
  bindingCredentials,
  browserSessions,
  connectorCredentials,
  connectors,
  connectorVersions,
  hostBindings,
  mcpConnections,
  mcpHealth,
  mcpReferences,
  mcpServerRevisions,
  mcpServers,
  oauthFlows,
  pendingLogins,
  personalTokens,
  secrets,
  sidecars,
  tokenFamilies,
  tunnelHosts,
  users,
} from './tables.ts';

/** How much of a kind leaves with a user. */
interface Departing {
  readonly secrets: number;
  readonly host_bindings: number;
  readonly tunnel_hosts: number;
  readonly connectors: number;
  readonly mcp_servers: number;
  readonly tokens: number;
  readonly sidecars: number;
  readonly sign_ins: number;
  readonly mcp_clients: number;
}

/** Counts what is a user's own, and what is signed in as the user. */
export async function countDeparting(database: Database, userId: string, nowSeconds: number): Promise<Departing> {
  const counted = async (table: SQLiteTable, of: SQL | undefined) =>
    (await database.read.select({ n: count() }).from(table).where(of))[0]?.n ?? 0;
  const owned = (table: SQLiteTable & { readonly ownerId: SQLiteColumn }) => counted(table, eq(table.ownerId, userId));
  const live = (table: Revocable) => counted(table, and(eq(table.userId, userId), isNull(table.revokedAt)));
  const browsers = and(eq(browserSessions.userId, userId), gt(browserSessions.expiresAt, nowSeconds));
  return {
    secrets: await owned(secrets),
    host_bindings: await owned(hostBindings),
    tunnel_hosts: await owned(tunnelHosts),
    connectors: await owned(connectors),
    mcp_servers: await owned(mcpServers),
    tokens: await live(personalTokens),
    sidecars: await live(sidecars),
    sign_ins: (await counted(browserSessions, browsers)) + (await live(tokenFamilies)),
    mcp_clients: await live(mcpConnections),
  };
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
    ...deleteOwned(database, id),
    database.read
      .update(personalTokens)
      .set({ revokedAt: now })
      .where(and(eq(personalTokens.userId, id), isNull(personalTokens.revokedAt))),
    ...signOutEverywhere(database, id, now),
  ];
}

function deleteOwned({ read }: Database, userId: string): Statement[] {
  const servers = sql`(SELECT id FROM mcp_servers WHERE owner_id = ${userId})`;
  const own = sql`(SELECT id FROM connectors WHERE owner_id = ${userId})`;
  return [
    read.delete(bindingCredentials).where(eq(bindingCredentials.ownerId, userId)),
    read.delete(hostBindings).where(eq(hostBindings.ownerId, userId)),
    read.delete(tunnelHosts).where(eq(tunnelHosts.ownerId, userId)),
    read.delete(mcpReferences).where(eq(mcpReferences.ownerId, userId)),
    read.delete(mcpServerRevisions).where(inArray(mcpServerRevisions.serverId, servers)),
    read.delete(mcpHealth).where(inArray(mcpHealth.serverId, servers)),
    read.delete(mcpServers).where(eq(mcpServers.ownerId, userId)),
    read.delete(connectorVersions).where(inArray(connectorVersions.connectorId, own)),
    read.delete(connectorCredentials).where(eq(connectorCredentials.ownerId, userId)),
    read.delete(connectors).where(eq(connectors.ownerId, userId)),
    read.delete(oauthFlows).where(eq(oauthFlows.userId, userId)),
    read.delete(pendingLogins).where(eq(pendingLogins.userId, userId)),
    read.delete(secrets).where(eq(secrets.ownerId, userId)),
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
