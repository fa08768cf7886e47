import { compactDecrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import type { z } from 'zod';
import { isRefreshPlaceholder } from '../../../shared/connect/token_request.ts';
import { connectorVaultPath } from '../../../shared/model/connector.ts';
import { parseJson } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import {
  type DiscardedLogins,
  HELD_LOGIN_TYP,
  LOGIN_TOKENS_TYP,
  loginKey,
  type LoginTokens,
  loginTokens,
  PENDING_LOGIN_SECONDS,
  PENDING_LOGIN_TYP,
  type PendingLogin,
  type PendingLoginInput,
  type StoreLoginInput,
  type storeLoginReply,
} from '../../../shared/wire/pending_logins.ts';
import { findAccount } from '../../store/accounts.ts';
import { type ConnectorRow, findConnectorsNamed } from '../../store/connectors.ts';
import { listSentinels } from '../../store/host_bindings.ts';
import {
  claimPendingLogin,
  countOtherLogins,
  deleteLogins,
  findLoginOfProgram,
  findPendingLogin,
  holdPendingLogin,
  insertPendingLogin,
  listExpiredLogins,
  listLoginsOf,
  type PendingLoginRow,
  takePendingLogin,
} from '../../store/pending_logins.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { type Changed, commitPolicy, controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowSeconds, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { type GivenUpTokens, revokeGivenUp } from '../oauth/given_up_tokens.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import type { SidecarCaller } from '../sidecars/sidecar_calls.ts';
import { secretStoring } from '../vault/secrets.ts';
import { checkSpec, credentialStoring } from './connector_credentials.ts';
import { parseStoredSpec } from './connector_records.ts';
import { writableConnector } from './connectors.ts';

/** More at once are of no use to a person. */
const MOST_PENDING = 16;

/**
 * Opens a login: from now on one sidecar of this user may send the tokens of it, once, encrypted to the key that is made here.
 * Refuses with `conflict` if too many are open.
 */
export async function openPendingLogin(
  context: ServiceContext,
  caller: Caller,
  input: PendingLoginInput,
): Promise<Result<PendingLogin, ApiError>> {
  const now = nowSeconds(context);
  const pair = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
  const { kty, crv, x, y } = await exportJWK(pair.publicKey);
  const fields = {
    id: freshId(context, 'plg'),
    userId: caller.userId,
    program: input.program,
    tokenUrl: input.token_url,
    clientId: input.client_id,
    grants: JSON.stringify(input.grants),
    state: 'open' as const,
    publicKey: JSON.stringify(loginKey.parse({ kty, crv, x, y })),
    account: null,
    client: clientText(input),
    sidecarId: null,
    createdAt: nowText(context),
    expiresAt: now + PENDING_LOGIN_SECONDS,
  };
  const privateKey = new Secret(JSON.stringify(await exportJWK(pair.privateKey)));
  const row = { ...fields, sealed: await context.vault.seal(loginPlace(fields), privateKey) };
  return commit(context, controlChain(caller), async () => {
    if ((await countOtherLogins(context.database, row, now)) >= MOST_PENDING) {
      const message = `${MOST_PENDING} logins wait already: they end by themselves within half an hour`;
      return err(apiError('conflict', message));
    }
    const earlier = await findLoginOfProgram(context.database, row);
    const limit = { most: MOST_PENDING, nowSeconds: now };
    const statements = insertPendingLogin(context.database, row, earlier, limit);
    const discarding = await discard(context, caller, caller.userId, earlier === null ? [] : [earlier]);
    return ok({ ...discarding, statements, value: toPendingLogin(row) });
  });
}

/** Refuses with `not_found`. */
export async function getPendingLogin(
  context: ServiceContext,
  { userId }: Caller,
  id: string,
): Promise<Result<PendingLogin, ApiError>> {
  const row = await findPendingLogin(context.database, { id, userId }, nowSeconds(context));
  return row === null ? err(loginNotFound(id)) : ok(toPendingLogin(row));
}

/** Deletes a login with its tokens, and has them revoked. Refuses with `not_found`. */
export async function discardPendingLogin(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const row = await findPendingLogin(context.database, { id, userId: caller.userId }, nowSeconds(context));
    if (row === null) return err(loginNotFound(id));
    return ok({ ...(await discard(context, caller, caller.userId, [row])), value: null });
  });
}

/** Deletes all logins of the caller, with their tokens, and has them revoked. */
export async function discardPendingLogins(
  context: ServiceContext,
  caller: Caller,
): Promise<Result<DiscardedLogins, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const rows = await listLoginsOf(context.database, caller.userId);
    const value = { discarded: rows.map(({ id }) => id) };
    return ok({ ...(await discard(context, caller, caller.userId, rows)), value });
  });
}

/** Deletes every login that has expired, of all users, with its tokens, and has them revoked. Of several workers, one does. */
export async function removeExpiredLogins(context: ServiceContext): Promise<void> {
  for (const row of await listExpiredLogins(context.database, nowSeconds(context))) {
    const enterpriseId = (await findAccount(context.database, row.userId))?.enterprise.id ?? '';
    const { statements, afterwards } = await discard(context, { enterpriseId }, null, [row]);
    if ((await context.database.write(statements)).ok) afterwards();
  }
}

type Discarding = Required<Pick<Change<null>, 'statements' | 'events' | 'afterwards'>>;

/** Deletes these logins, with an event for each that has tokens, which are then revoked. */
async function discard(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
  actor: string | null,
  rows: readonly PendingLoginRow[],
): Promise<Discarding> {
  const held = rows.filter(({ state }) => state === 'held');
  const given = await Promise.all(held.map((row) => tokensToRevoke(context, enterpriseId, actor, row)));
  return {
    statements: deleteLogins(context.database, rows),
    events: held.map((row) => loginEvent('control.login.discarded', actor, row)),
    afterwards: () => given.forEach((tokens) => tokens !== null && revokeGivenUp(context, tokens)),
  };
}

/**
 * What to revoke of a login that nobody keeps; null if svc does not know where, if the vault cannot open it, which prevents no
 * deletion, or if this user has a login of the program in use: at many providers a revocation ends all tokens of this client and
 * user.
 */
async function tokensToRevoke(
  context: ServiceContext,
  enterpriseId: string,
  actor: string | null,
  row: PendingLoginRow,
): Promise<GivenUpTokens | null> {
  if (row.client === null) return null;
  const inUse = await findConnectorsNamed(context.database, [row.userId], `login/${row.program}`);
  if (inUse.some(({ credential }) => credential?.state === 'ready')) return null;
  const sealed = await context.vault.open(loginPlace(row), row.sealed);
  if (sealed === null) return null;
  const client: OAuthClient = JSON.parse(row.client);
  const tokens: HeldTokens = JSON.parse(sealed.reveal());
  const { access_token: access, refresh_token: refresh } = tokens;
  const refreshToken = refresh === null ? null : new Secret(refresh);
  return {
    client,
    bundle: { clientSecret: null, accessToken: new Secret(access), refreshToken },
    enterpriseId,
    events: {
      revoked: loginEvent('control.connector.tokens_revoked', actor, row),
      notRevoked: loginEvent('control.connector.tokens_not_revoked', actor, row),
    },
  };
}

/** The client of a login whose tokens can be revoked. */
function clientText(input: PendingLoginInput): string | null {
  const { revocation_url, token_url, client_id, token_request } = input;
  if (revocation_url === undefined) return null;
  const client: OAuthClient = {
    client_id,
    client_authentication: 'post',
    authorization_url: null,
    token_url,
    ...(token_request === 'json' && { token_request }),
    device_authorization_url: null,
    revocation_url,
    scopes: [],
  };
  return JSON.stringify(client);
}

/**
 * What a sidecar of the user needs to capture the login, signed. From then on the login is for that sidecar only. Refuses with
 * `not_found`, also if the login has its tokens already or is for another sidecar.
 */
export async function tellPendingLogin(
  context: ServiceContext,
  caller: SidecarCaller,
  id: string,
): Promise<Result<string, ApiError>> {
  const row = await findPendingLogin(context.database, { id, userId: caller.userId }, nowSeconds(context));
  if (row?.state !== 'open') return err(loginNotFound(id));
  const claimed = await context.database.write(claimPendingLogin(context.database, id, caller.sidecarId));
  if (!claimed.ok) return err(loginNotFound(id));
  const { program, token_url, client_id, grants, expires_at } = toPendingLogin(row);
  // Not the column: whoever may write to the database could put a key of their own there, and read the tokens.
  const key = loginKey.parse(publicPart((await openSealed(context, row)).reveal()));
  const login = { id, program, token_url, client_id, grants, key, expires_at };
  return ok(
    await context.controlPlane.sign(PENDING_LOGIN_TYP, { sidecar_id: caller.sidecarId, nonce: caller.nonce, login }),
  );
}

/**
 * Holds the tokens of an open login. The private key is gone afterwards, so that they can be sent once. Refuses with `not_found`,
 * also if it has them already, and with `invalid_input`.
 */
export async function holdLoginTokens(
  context: ServiceContext,
  caller: SidecarCaller,
  id: string,
  jwe: string,
): Promise<Result<string, ApiError>> {
  const held = await commit(context, controlChain(caller), async () => {
    const row = await findPendingLogin(context.database, { id, userId: caller.userId }, nowSeconds(context));
    if (row?.state !== 'open' || row.sidecarId !== caller.sidecarId) return err(loginNotFound(id));
    const tokens = await openTokens(await openSealed(context, row), caller.sidecarId, id, jwe);
    if (tokens === null) return err(unusable('is not the tokens of this login, sealed to its key'));
    if (await holdsPlaceholder(context, caller, tokens)) return err(unusable('has placeholders of svc and no tokens'));
    const { account, ...secrets } = tokens;
    const value = new Secret(JSON.stringify(secrets));
    const sealed = await context.vault.seal(loginPlace({ ...row, state: 'held' }), value);
    const statements = holdPendingLogin(context.database, id, { sealed, account: JSON.stringify(account) });
    return ok({ statements, events: [loginEvent('control.login.held', caller.sidecarId, row)], value: null });
  });
  if (!held.ok) return held;
  const payload = { sidecar_id: caller.sidecarId, nonce: caller.nonce, login_id: id };
  return ok(await context.controlPlane.sign(HELD_LOGIN_TYP, payload));
}

/**
 * Stores the held tokens: from then on they are used. A connector gets them only if it is the login of this program, with the
 * token URL and the client that they were requested with, and the spec that the caller names; a secret gets an access token that
 * cannot be refreshed. Refuses with `not_found`, `conflict` while nothing is held or for another spec, `invalid_input`.
 */
export async function storePendingLogin(
  context: ServiceContext,
  caller: Caller,
  id: string,
  target: StoreLoginInput,
): Promise<Result<Changed<StoredLogin>, ApiError>> {
  return commitPolicy(context, caller, async () => {
    const row = await findPendingLogin(context.database, { id, userId: caller.userId }, nowSeconds(context));
    if (row === null) return err(loginNotFound(id));
    if (row.state !== 'held') return err(apiError('conflict', 'no tokens have arrived for this login'));
    const tokens: HeldTokens = JSON.parse((await openSealed(context, row)).reveal());
    const stored =
      'connector_id' in target
        ? await toConnector(context, caller, row, tokens, target)
        : await toSecret(context, caller, tokens, target);
    if (!stored.ok) return stored;
    const statements = [...takePendingLogin(context.database, id), ...stored.value.statements];
    return ok({ ...stored.value, statements });
  });
}

type StoredLogin = z.input<typeof storeLoginReply>;
type HeldTokens = Omit<LoginTokens, 'account'>;

async function toConnector(
  context: ServiceContext,
  caller: Caller,
  login: PendingLoginRow,
  tokens: HeldTokens,
  { connector_id: connectorId, content_hash: hash }: Extract<StoreLoginInput, { readonly connector_id: string }>,
): Promise<Result<Change<StoredLogin>, ApiError>> {
  const row = await writableConnector(context, caller, connectorId);
  if (!row.ok) return row;
  const { connector } = row.value;
  if (!isLoginOf(connector, login, caller)) {
    const message = `must be the personal login/${login.program}, with the token URL and the client of this login`;
    return err(apiError('invalid_input', `connector_id ${message}`, { fields: [{ field: 'connector_id', message }] }));
  }
  const same = checkSpec(row.value, hash);
  if (!same.ok) return same;
  const { access_token, refresh_token, expires_in } = tokens;
  const expiresAt = expires_in === null ? {} : { expires_at: endOf(context, expires_in) };
  const refresh = refresh_token === null ? {} : { refresh_token };
  const isNew = row.value.credential === null;
  const made = await credentialStoring(context, caller, row.value, {
    kind: 'oauth2',
    client_id: login.clientId,
    client_authentication: 'post',
    access_token,
    ...refresh,
    ...expiresAt,
  });
  if (!made.ok) return made;
  return ok({ ...made.value, value: { ref: formatVaultReference(connectorVaultPath(connector.fqn)), created: isNew } });
}

function isLoginOf(connector: ConnectorRow, login: PendingLoginRow, { userId }: Caller): boolean {
  const { credential } = parseStoredSpec(connector);
  return (
    connector.ownerId === userId &&
    connector.fqn === `login/${login.program}` &&
    credential.token_url === login.tokenUrl &&
    credential.login?.client_id === login.clientId
  );
}

async function toSecret(
  context: ServiceContext,
  caller: Caller,
  { access_token, refresh_token }: HeldTokens,
  { path, description }: Extract<StoreLoginInput, { readonly path: string }>,
): Promise<Result<Change<StoredLogin>, ApiError>> {
  if (refresh_token !== null) {
    const message = 'cannot hold this login, because its tokens are refreshed: store it with its connector';
    return err(apiError('invalid_input', `path ${message}`, { fields: [{ field: 'path', message }] }));
  }
  const input = { path, description, value: new Secret(access_token), owner: 'personal' as const };
  const change = await secretStoring(context, caller, caller.userId, input);
  return ok({ ...change, value: { ref: formatVaultReference(path), created: change.value.created } });
}

/** When the access token ends at the earliest: it was issued while the login was pending. So it is refreshed early, never late. */
function endOf(context: ServiceContext, seconds: number): string {
  const left = Math.max(0, seconds - PENDING_LOGIN_SECONDS);
  return new Date(context.clock.now() + left * 1000).toISOString();
}

/** The public part of a private key. */
function publicPart(privateKey: string): object {
  const { kty, crv, x, y }: Readonly<Record<string, unknown>> = JSON.parse(privateKey);
  return { kty, crv, x, y };
}

/** The vault place of a login's private key, and then of its tokens. */
export function loginPlace({ id, userId, state }: Pick<PendingLoginRow, 'id' | 'userId' | 'state'>) {
  return { owner: userId, path: `pending-login/${id}`, version: state === 'open' ? 1 : 2 };
}

async function openSealed(context: ServiceContext, row: PendingLoginRow): Promise<Secret> {
  const value = await context.vault.open(loginPlace(row), row.sealed);
  if (value !== null) return value;
  throw Object.assign(new Error(`the vault cannot open ${row.id}`), { code: 'vault_entry_damaged' });
}

/** Null if the text is not the tokens of this login from this sidecar. */
async function openTokens(privateKey: Secret, sidecarId: string, id: string, jwe: string): Promise<LoginTokens | null> {
  try {
    const key = await importJWK(JSON.parse(privateKey.reveal()), 'ECDH-ES');
    const options = { keyManagementAlgorithms: ['ECDH-ES'], contentEncryptionAlgorithms: ['A256GCM'] };
    const { plaintext, protectedHeader } = await compactDecrypt(jwe, key, options);
    const { typ, login, sidecar } = protectedHeader;
    if (typ !== LOGIN_TOKENS_TYP || login !== id || sidecar !== sidecarId) return null;
    const parsed = loginTokens.safeParse(parseJson(new TextDecoder('utf-8', { fatal: true }).decode(plaintext)));
    return parsed.success ? parsed.data : null;
  } catch {
    // Any error of jose means that the text is not what was asked for.
    return null;
  }
}

async function holdsPlaceholder(
  context: ServiceContext,
  caller: SidecarCaller,
  { access_token: access, refresh_token: refresh }: LoginTokens,
): Promise<boolean> {
  if (isRefreshPlaceholder(refresh ?? '')) return true;
  return (await listSentinels(context.database, visibleOwners(caller))).includes(access);
}

function loginEvent(type: AuditDraft['type'], actor: string | null, row: PendingLoginRow): AuditDraft {
  const data = {
    'svc.control.resource': row.id,
    'svc.control.owner': 'personal',
    'svc.connector.fqn': `login/${row.program}`,
  };
  return { type, actor, data };
}

function toPendingLogin(row: PendingLoginRow): PendingLogin {
  return {
    id: row.id,
    program: row.program,
    token_url: row.tokenUrl,
    client_id: row.clientId,
    grants: JSON.parse(row.grants),
    state: row.state,
    account: row.account === null ? null : JSON.parse(row.account),
    created_at: row.createdAt,
    expires_at: new Date(row.expiresAt * 1000).toISOString(),
  };
}

function unusable(message: string): ApiError {
  return apiError('invalid_input', `sealed ${message}`, { fields: [{ field: 'sealed', message }] });
}

function loginNotFound(id: string): ApiError {
  return apiError('not_found', `no login ${id} is open: it has ended, or its tokens have arrived already`);
}
