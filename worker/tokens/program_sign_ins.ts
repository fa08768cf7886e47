import { err, ok, type Result } from '../../shared/model/result.ts';
import { REFRESH_TOKEN_PREFIX, type TokenPair } from '../../shared/wire/device.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { commit } from '../kernel/commit.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import { controlChain } from '../kernel/policy_change.ts';
import type { TokenContext } from './token_context.ts';
import { freshId, nowSeconds, nowText } from '../kernel/service_context.ts';
import type { SessionMeta } from '../services/people/sign_in.ts';
import { takeAttempt, type Throttle } from '../sign_in/throttle.ts';
import { type Account, findAccount } from '../store/accounts.ts';
import type { Statement } from '../store/database.ts';
import {
  findRefreshToken,
  insertFamily,
  type RefreshTokenRow,
  revokeFamily,
  rotateRefreshToken,
  type TokenFamilyRow,
} from '../store/refresh_tokens.ts';
import { ACCESS_TOKEN_SECONDS } from './access_keys.ts';
import { issueAccessToken } from './access_tokens.ts';

/** A program needs one every ten minutes. Each leaves a row that is kept for a month to detect reuse. */
const REFRESHES: Throttle = { kind: 'refreshes', most: 60, windowSeconds: 10 * 60 };

const DAY_SECONDS = 24 * 3600;
/** A program must sign in again after this time, even if it is active. */
const FAMILY_SECONDS = 90 * DAY_SECONDS;
/** A program must sign in again after this time without a call. */
const REFRESH_TOKEN_SECONDS = 30 * DAY_SECONDS;

/** A program's sign-in before it is stored; its tokens are valid once the statements are written. */
interface NewProgramSignIn {
  readonly family: TokenFamilyRow;
  readonly statements: readonly Statement[];
  readonly tokens: TokenPair;
}

/**
 * Starts the sign-in of a program for a user; `provider` is that of the approving browser session. Refuses with
 * `public_url_missing`.
 */
export async function newProgramSignIn(
  context: TokenContext,
  account: Account,
  { client, provider }: SessionMeta,
): Promise<Result<NewProgramSignIn, ApiError>> {
  const now = nowText(context);
  const begun = nowSeconds(context);
  const family: TokenFamilyRow = {
    id: freshId(context, 'fam'),
    userId: account.user.id,
    provider,
    client,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: begun + FAMILY_SECONDS,
    revokedAt: null,
  };
  const refresh = await newRefreshToken(context, family);
  const tokens = await pairOf(context, account, family, refresh.token);
  if (!tokens.ok) return tokens;
  const statements = insertFamily(context.database, family, refresh.row, begun);
  return ok({ family, statements, tokens: tokens.value });
}

/**
 * Exchanges a refresh token for new tokens. A token that is used a second time was stolen, before or after the first
 * use. Nobody can tell which caller is the thief, so the whole sign-in ends (RFC 9700 section 4.14). Refuses with
 * `sign_in_over` for every reason, `too_many_attempts`, and `public_url_missing`.
 */
export async function refreshTokens(context: TokenContext, token: string): Promise<Result<TokenPair, ApiError>> {
  const tokenHash = await sha256Base64Url(token);
  const found = await findRefreshToken(context.database, tokenHash);
  if (found === null || !isLive(context, found.family)) return err(signInOver());
  const { family } = found;
  const account = await findAccount(context.database, family.userId);
  if (account === null) throw new Error('the user of a sign-in is not in the database');
  if (found.token.usedAt !== null) return endStolen(context, account, family);
  if (found.token.expiresAt <= nowSeconds(context) || account.user.suspendedAt !== null) return err(signInOver());
  const allowed = await takeAttempt(context, REFRESHES, family.id);
  if (!allowed.ok) return allowed;
  const next = await newRefreshToken(context, family);
  const tokens = await pairOf(context, account, family, next.token);
  if (!tokens.ok) return tokens;
  const rotation = rotateRefreshToken(context.database, tokenHash, next.row, nowText(context));
  return (await context.database.write(rotation)).ok ? tokens : endStolen(context, account, family);
}

/** Ends the sign-in of a refresh token, used or not. Does nothing if it has ended or the token is unknown. */
export async function signProgramOut(context: TokenContext, token: string): Promise<void> {
  const found = await findRefreshToken(context.database, await sha256Base64Url(token));
  if (found === null || !isLive(context, found.family)) return;
  const account = await findAccount(context.database, found.family.userId);
  if (account !== null) await endFamily(context, account, found.family);
}

async function endStolen(
  context: TokenContext,
  account: Account,
  family: TokenFamilyRow,
): Promise<Result<never, ApiError>> {
  await endFamily(context, account, family);
  return err(signInOver());
}

async function endFamily(context: TokenContext, { user }: Account, family: TokenFamilyRow): Promise<void> {
  const data = { 'svc.control.resource': family.id };
  const event = { type: 'control.session.revoked' as const, actor: user.id, data };
  await commit(context, controlChain(user), async () =>
    ok({ statements: [revokeFamily(context.database, family.id, nowText(context))], events: [event], value: null }),
  );
}

async function newRefreshToken(
  context: TokenContext,
  family: TokenFamilyRow,
): Promise<{ readonly token: string; readonly row: RefreshTokenRow }> {
  const token = REFRESH_TOKEN_PREFIX + randomToken();
  const expiresAt = Math.min(nowSeconds(context) + REFRESH_TOKEN_SECONDS, family.expiresAt);
  return { token, row: { tokenHash: await sha256Base64Url(token), familyId: family.id, expiresAt, usedAt: null } };
}

async function pairOf(
  context: TokenContext,
  account: Account,
  family: TokenFamilyRow,
  refreshToken: string,
): Promise<Result<TokenPair, ApiError>> {
  if (context.publicUrl === null) return err(publicUrlMissing());
  const accessToken = await issueAccessToken(context, context.publicUrl, { account, familyId: family.id });
  return ok({
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: ACCESS_TOKEN_SECONDS,
    refresh_token: refreshToken,
  });
}

function isLive(context: TokenContext, family: TokenFamilyRow): boolean {
  return family.revokedAt === null && family.expiresAt > nowSeconds(context);
}

/** The same for a token that is unknown, used or revoked, and for a suspended user. */
function signInOver(): ApiError {
  return apiError('sign_in_over', 'this sign-in has ended: sign in again with "svc login"');
}

/** Tokens name their control plane, and a Host header can be forged. */
export function publicUrlMissing(): ApiError {
  return apiError(
    'public_url_missing',
    'this control plane has no configured address: whoever runs it must set SVC_PUBLIC_URL to its origin',
  );
}
