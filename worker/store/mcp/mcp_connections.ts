import { and, desc, eq, gt, inArray, isNotNull, isNull, lt, ne, notInArray, type SQL, sql } from 'drizzle-orm';
import { type Database, guard, type Statement } from '../database.ts';
import { insertExpiring } from '../expiring_rows.ts';
import { mcpAssertions, mcpCodes, mcpConnections, mcpDisconnected, mcpRefreshTokens, users } from '../tables.ts';

export type McpConnectionRow = typeof mcpConnections.$inferSelect;
type McpCodeRow = typeof mcpCodes.$inferSelect;
export type McpRefreshTokenRow = typeof mcpRefreshTokens.$inferSelect;

/** Stores a connection with the code that its client redeems, and deletes expired ones. */
export function insertMcpConnection(
  database: Database,
  connection: McpConnectionRow,
  code: McpCodeRow,
  nowSeconds: number,
): Statement[] {
  return [
    ...insertExpiring(database, mcpConnections, connection, nowSeconds),
    ...insertExpiring(database, mcpCodes, code, nowSeconds),
  ];
}

/** A connection that is neither revoked nor expired. */
export async function findLiveMcpConnection(
  database: Database,
  id: string,
  nowSeconds: number,
): Promise<McpConnectionRow | null> {
  const rows = await database.read
    .select()
    .from(mcpConnections)
    .where(and(eq(mcpConnections.id, id), isLive(nowSeconds)));
  return rows[0] ?? null;
}

/** A user's connections that are in use, newest first. */
export async function listMcpConnections(
  database: Database,
  page: {
    readonly userId: string;
    readonly nowSeconds: number;
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<McpConnectionRow[]> {
  const after = page.after === null ? undefined : lt(mcpConnections.id, page.after);
  const redeemed = isNotNull(mcpConnections.lastUsedAt);
  return database.read
    .select()
    .from(mcpConnections)
    .where(and(eq(mcpConnections.userId, page.userId), isLive(page.nowSeconds), redeemed, after))
    .orderBy(desc(mcpConnections.id))
    .limit(page.limit);
}

function isLive(nowSeconds: number) {
  return and(isNull(mcpConnections.revokedAt), gt(mcpConnections.expiresAt, nowSeconds));
}

/** A code with its connection, including used and revoked ones. */
export async function findMcpCode(
  database: Database,
  codeHash: string,
): Promise<{ readonly code: McpCodeRow; readonly connection: McpConnectionRow } | null> {
  const rows = await database.read
    .select({ code: mcpCodes, connection: mcpConnections })
    .from(mcpCodes)
    .innerJoin(mcpConnections, eq(mcpConnections.id, mcpCodes.connectionId))
    .where(eq(mcpCodes.codeHash, codeHash));
  return rows[0] ?? null;
}

/** The same for a refresh token. */
export async function findMcpRefreshToken(
  database: Database,
  tokenHash: string,
): Promise<{ readonly token: McpRefreshTokenRow; readonly connection: McpConnectionRow } | null> {
  const rows = await database.read
    .select({ token: mcpRefreshTokens, connection: mcpConnections })
    .from(mcpRefreshTokens)
    .innerJoin(mcpConnections, eq(mcpConnections.id, mcpRefreshTokens.connectionId))
    .where(eq(mcpRefreshTokens.tokenHash, tokenHash));
  return rows[0] ?? null;
}

/** What a code or a refresh token is exchanged for. */
interface McpExchange {
  readonly next: McpRefreshTokenRow;
  readonly now: string;
  readonly nowSeconds: number;
}

/**
 * Uses up a code and stores the first refresh token; a conflict if it was used meanwhile or its connection was revoked.
 * The connection lives until `expiresAt` from now on, and the used code as long as it takes to notice a second use.
 */
export function redeemMcpCode(
  database: Database,
  codeHash: string,
  { next, now, nowSeconds }: McpExchange,
  lasts: { readonly connection: number; readonly code: number },
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM mcp_codes c JOIN mcp_connections m ON m.id = c.connection_id
      WHERE c.code_hash = ${codeHash} AND c.used_at IS NULL AND m.revoked_at IS NULL)`),
    database.read.update(mcpCodes).set({ usedAt: now, expiresAt: lasts.code }).where(eq(mcpCodes.codeHash, codeHash)),
    ...insertExpiring(database, mcpRefreshTokens, next, nowSeconds),
    database.read
      .update(mcpConnections)
      .set({ lastUsedAt: now, expiresAt: lasts.connection })
      .where(eq(mcpConnections.id, next.connectionId)),
  ];
}

/** Uses up a token and stores the next one; a conflict if it was used meanwhile or its connection was revoked. */
export function rotateMcpRefreshToken(
  database: Database,
  tokenHash: string,
  { next, now, nowSeconds }: McpExchange,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM mcp_refresh_tokens t JOIN mcp_connections m ON m.id = t.connection_id
      WHERE t.token_hash = ${tokenHash} AND t.used_at IS NULL AND m.revoked_at IS NULL)`),
    database.read.update(mcpRefreshTokens).set({ usedAt: now }).where(eq(mcpRefreshTokens.tokenHash, tokenHash)),
    ...insertExpiring(database, mcpRefreshTokens, next, nowSeconds),
    database.read.update(mcpConnections).set({ lastUsedAt: now }).where(eq(mcpConnections.id, next.connectionId)),
  ];
}

/** Ends a connection: its code and tokens are invalid from now on. */
export function endMcpConnection(database: Database, id: string, revokedAt: string): Statement {
  return database.read
    .update(mcpConnections)
    .set({ revokedAt })
    .where(and(eq(mcpConnections.id, id), isNull(mcpConnections.revokedAt)));
}

/** Ends all connections of a user. */
export function endMcpConnectionsOf(database: Database, userIds: SQL, revokedAt: string): Statement {
  return database.read
    .update(mcpConnections)
    .set({ revokedAt })
    .where(and(inArray(mcpConnections.userId, userIds), isNull(mcpConnections.revokedAt)));
}

/** What a provider's assertion connects. */
interface AssertedUse {
  readonly assertion: typeof mcpAssertions.$inferSelect;
  readonly now: string;
  readonly nowSeconds: number;
}

/** Stores a connection that an assertion makes, and uses the assertion up; a conflict if it was used. */
export function insertAssertedConnection(
  database: Database,
  connection: McpConnectionRow,
  { assertion, nowSeconds }: AssertedUse,
): Statement[] {
  return [
    ...insertExpiring(database, mcpAssertions, assertion, nowSeconds),
    ...insertExpiring(database, mcpConnections, connection, nowSeconds),
  ];
}

/** Renews a connection by a further assertion, and uses that up; a conflict if it was used, or the connection was ended. */
export function renewAssertedConnection(
  database: Database,
  { id, expiresAt }: Pick<McpConnectionRow, 'id' | 'expiresAt'>,
  { assertion, now, nowSeconds }: AssertedUse,
): Statement[] {
  return [
    ...guard(sql`EXISTS (SELECT 1 FROM mcp_connections WHERE id = ${id} AND revoked_at IS NULL)`),
    ...insertExpiring(database, mcpAssertions, assertion, nowSeconds),
    database.read.update(mcpConnections).set({ lastUsedAt: now, expiresAt }).where(eq(mcpConnections.id, id)),
  ];
}

export async function isAssertionUsed({ read }: Database, assertionHash: string): Promise<boolean> {
  const rows = await read.select().from(mcpAssertions).where(eq(mcpAssertions.assertionHash, assertionHash));
  return rows.length > 0;
}

/** A user and a client. */
type UserAndClient = Pick<McpConnectionRow, 'userId' | 'clientId'>;

/** The live connection of a client that the user's provider has made. */
export async function findAssertedConnection(
  database: Database,
  { userId, clientId }: UserAndClient,
  nowSeconds: number,
): Promise<McpConnectionRow | null> {
  const isOfClient = and(eq(mcpConnections.userId, userId), eq(mcpConnections.clientId, clientId), isByProvider());
  const rows = await database.read
    .select()
    .from(mcpConnections)
    .where(and(isOfClient, isLive(nowSeconds)))
    .orderBy(desc(mcpConnections.id));
  return rows[0] ?? null;
}

/** Whether a user has another live connection of the client of this one. */
export async function hasOtherConnection(
  database: Database,
  { id, userId, clientId }: UserAndClient & Pick<McpConnectionRow, 'id'>,
  nowSeconds: number,
): Promise<boolean> {
  const isOther = and(
    eq(mcpConnections.userId, userId),
    eq(mcpConnections.clientId, clientId),
    ne(mcpConnections.id, id),
  );
  const rows = await database.read
    .select({ id: mcpConnections.id })
    .from(mcpConnections)
    .where(and(isOther, isLive(nowSeconds)))
    .limit(1);
  return rows.length > 0;
}

function isByProvider() {
  return eq(mcpConnections.connectedBy, 'provider');
}

/** Ends what an enterprise's provider has connected, but for these clients. */
export function endAssertedConnections(
  database: Database,
  enterpriseId: string,
  { except, now }: { readonly except: readonly string[]; readonly now: string },
): Statement {
  const members = database.read.select({ id: users.id }).from(users).where(eq(users.enterpriseId, enterpriseId));
  const others = except.length === 0 ? undefined : notInArray(mcpConnections.clientId, [...except]);
  return database.read
    .update(mcpConnections)
    .set({ revokedAt: now })
    .where(and(isByProvider(), isNull(mcpConnections.revokedAt), inArray(mcpConnections.userId, members), others));
}

/** Whether the user has disconnected a client that the provider connects, and has not connected it since. */
export async function hasDisconnected({ read }: Database, { userId, clientId }: UserAndClient): Promise<boolean> {
  return (await read.select().from(mcpDisconnected).where(isDisconnected({ userId, clientId }))).length > 0;
}

/** Keeps the provider from connecting a client of the user again. */
export function keepDisconnected({ read }: Database, { userId, clientId }: UserAndClient): Statement {
  return read.insert(mcpDisconnected).values({ userId, clientId }).onConflictDoNothing();
}

/** The user has connected the client. */
export function forgetDisconnected({ read }: Database, of: UserAndClient): Statement {
  return read.delete(mcpDisconnected).where(isDisconnected(of));
}

function isDisconnected({ userId, clientId }: UserAndClient) {
  return and(eq(mcpDisconnected.userId, userId), eq(mcpDisconnected.clientId, clientId));
}
