import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { id } from '../../../shared/wire/primitives.ts';
import {
  MCP_SCOPE,
  type McpAccessToken,
  type McpClientRecord,
  type McpTokens,
} from '../../../shared/wire/mcp/mcp_clients.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPageById } from '../../kernel/cursors.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { providerMcpClients } from '../../sign_in/provider_mcp_clients.ts';
import { takeAttempt, type Throttle } from '../../sign_in/throttle.ts';
import { type Account, findAccount } from '../../store/accounts.ts';
import { findBrowserSession } from '../../store/browser_sessions.ts';
import { findEnterprise } from '../../store/enterprise_settings.ts';
import { keepMcpClient } from '../../store/mcp/mcp_clients.ts';
import {
  endMcpConnection,
  findLiveMcpConnection,
  findMcpCode,
  findMcpRefreshToken,
  forgetDisconnected,
  hasOtherConnection,
  insertMcpConnection,
  keepDisconnected,
  listMcpConnections,
  type McpConnectionRow,
  type McpRefreshTokenRow,
  redeemMcpCode,
  rotateMcpRefreshToken,
} from '../../store/mcp/mcp_connections.ts';
import { ACCESS_TOKEN_SECONDS } from '../access_keys.ts';
import { signAccessToken, verifyToken } from '../access_tokens.ts';
import type { TokenContext } from '../token_context.ts';
import { type AuthorisationRequest, isResource, mcpResource } from './authorisation_request.ts';
import { oauthError, type OAuthRefusal } from './oauth_refusal.ts';

const CODE_SECONDS = 60;
/** A used code is kept this long, so that a second use is noticed. */
const USED_CODE_SECONDS = 24 * 3600;
const DAY_SECONDS = 24 * 3600;
/** A client must be connected again after this time, even if it is in use. */
export const CONNECTION_SECONDS = 90 * DAY_SECONDS;
/** The same after this time without a refresh. */
const REFRESH_TOKEN_SECONDS = 30 * DAY_SECONDS;
const REFRESH_TOKEN_PREFIX = 'svc_mcp_rt_';

const DECISIONS: Throttle = { kind: 'mcp client decisions', most: 30, windowSeconds: 10 * 60 };
/** A client needs one every ten minutes. */
const REFRESHES: Throttle = { kind: 'mcp refreshes', most: 60, windowSeconds: 10 * 60 };

/**
 * Connects a client for the caller, who has decided so in a browser, and returns its code. The connection has the provider
 * of that browser's sign-in, and ends when rules end that. Refuses with `too_many_attempts`, and with `unauthenticated`
 * if the browser was signed out meanwhile.
 */
export async function connectMcpClient(
  context: TokenContext,
  caller: Caller,
  request: AuthorisationRequest,
): Promise<Result<string, ApiError>> {
  const allowed = await takeAttempt(context, DECISIONS, caller.userId);
  if (!allowed.ok) return allowed;
  const code = randomToken();
  const codeHash = await sha256Base64Url(code);
  return commit(context, controlChain(caller), async () => {
    const now = nowSeconds(context);
    const session = await findBrowserSession(context.database, caller.signIn ?? '', now);
    if (session === null) return err(apiError('unauthenticated', 'this browser was signed out: sign in again'));
    const { client, redirectUri, challenge } = request;
    const connection: McpConnectionRow = {
      id: freshId(context, 'mcc'),
      userId: caller.userId,
      provider: session.provider,
      clientId: client.id,
      clientName: client.name,
      redirectOrigin: new URL(redirectUri).origin,
      createdAt: nowText(context),
      lastUsedAt: null,
      expiresAt: now + CODE_SECONDS,
      revokedAt: null,
      hasOperations: true,
      connectedBy: 'person',
    };
    const validUntil = now + CODE_SECONDS;
    const row = { codeHash, connectionId: connection.id, redirectUri, challenge, usedAt: null };
    return ok({
      statements: [
        ...insertMcpConnection(context.database, connection, { ...row, validUntil, expiresAt: validUntil }, now),
        forgetDisconnected(context.database, connection),
      ],
      events: [eventOf('control.mcp_client.connected', caller.userId, connection)],
      adds: [{ kind: 'mcp_connections', holder: caller.userId }],
      value: code,
    });
  });
}

/** Records that the caller did not connect a client. Refuses with `too_many_attempts`. */
export async function denyMcpClient(
  context: TokenContext,
  caller: Caller,
  { client }: AuthorisationRequest,
): Promise<Result<null, ApiError>> {
  const allowed = await takeAttempt(context, DECISIONS, caller.userId);
  if (!allowed.ok) return allowed;
  const data = { 'svc.mcp.client': client.id };
  const event = { type: 'control.mcp_client.denied' as const, actor: caller.userId, data };
  return commit(context, controlChain(caller), async () => ok({ statements: [], events: [event], value: null }));
}

/** The fields of a token request (RFC 6749 section 4.1.3). */
interface CodeExchange {
  readonly code: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly verifier: string;
  readonly resource: readonly string[];
}

const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/**
 * Exchanges a code for tokens. A code that is redeemed twice was stolen before or after the first time, so its connection
 * ends (RFC 6749 section 4.1.2). Refuses with `invalid_grant`, `invalid_target`.
 */
export async function redeemCode(
  context: TokenContext,
  { code, clientId, redirectUri, verifier, resource }: CodeExchange,
): Promise<Result<McpTokens, OAuthRefusal>> {
  const target = targetProblem(context, resource);
  if (target !== null) return err(target);
  const codeHash = await sha256Base64Url(code);
  const found = await findMcpCode(context.database, codeHash);
  if (found === null || found.connection.clientId !== clientId) return err(invalidGrant());
  const { connection, code: row } = found;
  const account = await findAccount(context.database, connection.userId);
  if (account === null) throw new Error('the user of a connection is not in the database');
  const isProven = VERIFIER.test(verifier) && (await sha256Base64Url(verifier)) === row.challenge;
  if (row.redirectUri !== redirectUri || !isProven) return err(invalidGrant());
  if (row.usedAt !== null) return endStolen(context, account, connection, 'code_reused');
  if (row.validUntil <= nowSeconds(context) || !isUsable(context, account, connection)) return err(invalidGrant());
  const now = nowSeconds(context);
  const ends = now + CONNECTION_SECONDS;
  const next = await newRefreshToken(context, { ...connection, expiresAt: ends });
  const statements = [
    ...redeemMcpCode(context.database, codeHash, exchangeOf(context, next.row), {
      connection: ends,
      code: now + USED_CODE_SECONDS,
    }),
    keepMcpClient(context.database, clientId, ends),
  ];
  const written = await context.database.write(statements);
  if (!written.ok) return endStolen(context, account, connection, 'code_reused');
  return ok(await tokensOf(context, connection, next.token));
}

/**
 * Exchanges a refresh token for new tokens. A second use ends the connection, because nobody can tell which of the two
 * users is the thief (RFC 9700 section 4.14). Refuses with `invalid_grant`, `invalid_target`, `slow_down`.
 */
export async function refreshMcpTokens(
  context: TokenContext,
  {
    token,
    clientId,
    resource,
  }: { readonly token: string; readonly clientId: string; readonly resource: readonly string[] },
): Promise<Result<McpTokens, OAuthRefusal>> {
  const target = targetProblem(context, resource);
  if (target !== null) return err(target);
  const tokenHash = await sha256Base64Url(token);
  const found = await findMcpRefreshToken(context.database, tokenHash);
  if (found === null || found.connection.clientId !== clientId) return err(invalidGrant());
  const { connection } = found;
  const account = await findAccount(context.database, connection.userId);
  if (account === null) throw new Error('the user of a connection is not in the database');
  if (!isUsable(context, account, connection)) return err(invalidGrant());
  if (found.token.usedAt !== null) return endStolen(context, account, connection, 'token_reused');
  if (found.token.expiresAt <= nowSeconds(context)) return err(invalidGrant());
  const allowed = await takeAttempt(context, REFRESHES, connection.id);
  if (!allowed.ok) return err(oauthError('slow_down', allowed.error.message));
  const next = await newRefreshToken(context, connection);
  const rotation = rotateMcpRefreshToken(context.database, tokenHash, exchangeOf(context, next.row));
  if (!(await context.database.write(rotation)).ok) return endStolen(context, account, connection, 'token_reused');
  return ok(await tokensOf(context, connection, next.token));
}

/** Ends the connection of a refresh or access token of this client (RFC 7009). Does nothing for any other token. */
export async function revokeMcpToken(context: TokenContext, token: string, clientId: string): Promise<void> {
  const byRefresh = await findMcpRefreshToken(context.database, await sha256Base64Url(token));
  const connection = byRefresh?.connection ?? (await findByAccessToken(context, token));
  if (connection === null || connection.clientId !== clientId) return;
  const account = await findAccount(context.database, connection.userId);
  if (account !== null && isUsable(context, account, connection)) {
    await endConnection(context, account, connection, 'revoked_by_client');
  }
}

/** The call of a connected client. */
export interface McpClientCall {
  readonly caller: Caller;
  readonly connectionId: string;
  readonly clientId: string;
  /** Its own name for itself. */
  readonly clientName: string;
  /** Whether the person agreed to the operations of connectors too. */
  readonly hasOperations: boolean;
  /** The origin of the web pages that are this client's. */
  readonly redirectOrigin: string;
}

/**
 * The caller of a client's access token; null unless it is for this resource, its connection is live and its user is not
 * suspended.
 */
export async function authenticateMcpClient(context: TokenContext, token: string): Promise<McpClientCall | null> {
  const connection = await findByAccessToken(context, token);
  if (connection === null) return null;
  const account = await findAccount(context.database, connection.userId);
  if (account === null || account.user.suspendedAt !== null) return null;
  const { id: userId, enterpriseId, role } = account.user;
  const { id: connectionId, clientId, clientName, redirectOrigin, hasOperations } = connection;
  return { caller: { userId, enterpriseId, role }, connectionId, clientId, clientName, redirectOrigin, hasOperations };
}

const claimsOfToken = z.object({ sub: id('usr'), connection: id('mcc'), client_id: z.string() });

async function findByAccessToken(context: TokenContext, token: string): Promise<McpConnectionRow | null> {
  const issuer = context.publicUrl;
  if (issuer === null) return null;
  const claims = claimsOfToken.safeParse(await verifyToken(context, token, { issuer, audience: mcpResource(issuer) }));
  if (!claims.success) return null;
  const found = await findLiveMcpConnection(context.database, claims.data.connection, nowSeconds(context));
  const isOfToken = found?.userId === claims.data.sub && found.clientId === claims.data.client_id;
  return isOfToken ? found : null;
}

/** The caller's connected clients, newest first. Refuses with `invalid_cursor`. */
export function listMcpClientPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<McpClientRecord>, ApiError>> {
  const of = { userId: caller.userId, nowSeconds: nowSeconds(context) };
  return readPageById(query, 'mcc', {
    read: (from) => listMcpConnections(context.database, { ...of, ...from }),
    toItem: toRecord,
  });
}

/**
 * Disconnects a client of the caller: its next call is refused. The provider of the enterprise does not connect it again, unless the
 * caller still has another connection of it, which the caller made. Refuses with `not_found`.
 */
export async function disconnectMcpClient(
  context: ServiceContext,
  caller: Caller,
  connectionId: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const found = await findLiveMcpConnection(context.database, connectionId, nowSeconds(context));
    if (found === null || found.userId !== caller.userId) {
      return err(apiError('not_found', `there is no client ${connectionId}: list them with GET /v1/mcp-clients`));
    }
    const isKept = found.connectedBy === 'provider' || (await isLastOfProviders(context, caller, found));
    return ok({
      statements: [
        endMcpConnection(context.database, found.id, nowText(context)),
        ...(isKept ? [keepDisconnected(context.database, found)] : []),
      ],
      events: [eventOf('control.mcp_client.ended', caller.userId, found)],
      value: null,
    });
  });
}

/** Whether it is the last connection of a client that the provider could connect at once. */
async function isLastOfProviders(
  context: ServiceContext,
  { enterpriseId }: Caller,
  connection: McpConnectionRow,
): Promise<boolean> {
  const { database } = context;
  const enterprise = await findEnterprise(database, enterpriseId);
  if (enterprise === null || !providerMcpClients(enterprise).includes(connection.clientId)) return false;
  return !(await hasOtherConnection(database, connection, nowSeconds(context)));
}

function toRecord(row: McpConnectionRow): McpClientRecord {
  return {
    id: row.id,
    name: row.clientName,
    client_id: row.clientId,
    redirect_origin: row.redirectOrigin,
    connected_by: row.connectedBy,
    created_at: row.createdAt,
    last_used_at: row.lastUsedAt ?? row.createdAt,
    expires_at: new Date(row.expiresAt * 1000).toISOString(),
  };
}

function isUsable(context: ServiceContext, { user }: Account, connection: McpConnectionRow): boolean {
  return user.suspendedAt === null && connection.revokedAt === null && connection.expiresAt > nowSeconds(context);
}

type EndReason = 'code_reused' | 'token_reused' | 'revoked_by_client';

async function endStolen(
  context: TokenContext,
  account: Account,
  connection: McpConnectionRow,
  reason: EndReason,
): Promise<Result<never, OAuthRefusal>> {
  if (connection.revokedAt === null) await endConnection(context, account, connection, reason);
  return err(invalidGrant());
}

async function endConnection(
  context: TokenContext,
  { user }: Account,
  connection: McpConnectionRow,
  reason: EndReason,
): Promise<void> {
  const event = eventOf('control.mcp_client.ended', null, connection, reason);
  await commit(context, controlChain(user), async () => {
    // Somebody else may have ended it meanwhile, such as a third use at the same time.
    const live = await findLiveMcpConnection(context.database, connection.id, nowSeconds(context));
    if (live === null) return ok({ statements: [], events: [], value: null });
    const statements = [endMcpConnection(context.database, connection.id, nowText(context))];
    return ok({ statements, events: [event], value: null });
  });
}

/** `actor` is null if the client ended it, or showed a token that was used. */
export function eventOf(
  type: 'control.mcp_client.connected' | 'control.mcp_client.ended',
  actor: string | null,
  { id: connectionId, clientId }: McpConnectionRow,
  reason?: EndReason,
): AuditDraft {
  const about = { 'svc.control.resource': connectionId, 'svc.mcp.client': clientId };
  return { type, actor, data: { ...about, ...(reason !== undefined && { 'svc.mcp.reason': reason }) } };
}

function exchangeOf(context: TokenContext, next: McpRefreshTokenRow) {
  return { next, now: nowText(context), nowSeconds: nowSeconds(context) };
}

async function newRefreshToken(
  context: TokenContext,
  { id: connectionId, expiresAt: ends }: McpConnectionRow,
): Promise<{ readonly token: string; readonly row: McpRefreshTokenRow }> {
  const token = REFRESH_TOKEN_PREFIX + randomToken();
  const expiresAt = Math.min(nowSeconds(context) + REFRESH_TOKEN_SECONDS, ends);
  return { token, row: { tokenHash: await sha256Base64Url(token), connectionId, expiresAt, usedAt: null } };
}

async function tokensOf(context: TokenContext, connection: McpConnectionRow, refreshToken: string): Promise<McpTokens> {
  return { ...(await accessTokenOf(context, connection)), refresh_token: refreshToken };
}

/** A new access token of a connection. */
export async function accessTokenOf(
  context: TokenContext,
  { id: connection, userId: subject, clientId }: Pick<McpConnectionRow, 'id' | 'userId' | 'clientId'>,
): Promise<McpAccessToken> {
  const issuer = context.publicUrl;
  if (issuer === null) throw new Error('tokens of MCP clients need SVC_PUBLIC_URL');
  const claims = { client_id: clientId, scope: MCP_SCOPE, connection };
  const accessToken = await signAccessToken(context, { issuer, audience: mcpResource(issuer), subject, claims });
  return { access_token: accessToken, token_type: 'Bearer', expires_in: ACCESS_TOKEN_SECONDS, scope: MCP_SCOPE };
}

/** What is wrong with the resources that a request names; null if nothing is. */
export function targetProblem(context: TokenContext, resource: readonly string[]): OAuthRefusal | null {
  const ours = mcpResource(context.publicUrl ?? '');
  return resource.every((each) => isResource(each, ours)) ? null : oauthError('invalid_target', `use ${ours}`);
}

/** One refusal for a code or token that is unknown, used, expired, of another client, or of a suspended user. */
function invalidGrant(): OAuthRefusal {
  return oauthError('invalid_grant', 'this code or token is not valid: connect the client again');
}
