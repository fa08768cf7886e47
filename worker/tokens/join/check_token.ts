import { decodeJwt, decodeProtectedHeader, errors, type JWK, type JWTPayload } from 'jose';
import { z } from 'zod';
import { matchClaims } from '../../../shared/join/claims_policy.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { toShownLine } from '../../../shared/model/shown_text.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { JoinRefusal } from '../../../shared/wire/service_accounts.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { MOST_SKEW_MS } from '../../kernel/leased_renewal.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { ServiceAccountRow } from '../../store/service_accounts.ts';
import { PUBLIC_KEY_ALGORITHMS, verifyByKeys } from '../verify_by_keys.ts';
import { readIssuerKeys } from './issuer_keys.ts';

/** A token that lives longer is not one of a job. */
export const MAX_TOKEN_SECONDS = 24 * 3600;
/** Clocks differ. */
const TOLERANCE_SECONDS = 30;

/** A token that an issuer signed for this service account. */
export interface CheckedToken {
  readonly subject: string;
  /** SHA-256 over the enterprise, the issuer and the token's id: a token is used once. */
  readonly tokenHash: string;
  /** When it is refused as expired, in seconds since the epoch. */
  readonly expiresAt: number;
}

/** Why a token was refused. `subject` is known if the issuer signed it. */
export interface TokenRefusal {
  readonly reason: JoinRefusal;
  readonly subject?: string;
  /** The claims that the policy wants otherwise; never their values. */
  readonly claims?: readonly string[];
}

/** Either the token was refused, or it could not be checked. */
export type TokenProblem =
  | { readonly kind: 'refusal'; readonly refusal: TokenRefusal }
  | { readonly kind: 'failure'; readonly error: ApiError };

/**
 * Checks the token of a job: its algorithm, issuer, signature, audience, times and claims, in this order. Nothing is
 * called for a token that does not name the issuer. Fails with `issuer_failed`.
 */
export async function checkToken(
  context: ServiceContext,
  { account }: Pick<ServiceAccountRow, 'account'>,
  token: string,
): Promise<Result<CheckedToken, TokenProblem>> {
  const unread = unverifiedProblem(token, account.issuer);
  if (unread !== null) return refuse({ reason: unread });
  const keys = await keysOf(context, account);
  if (!keys.ok) return err({ kind: 'failure', error: keys.error });
  const verified = await verify(context, token, { issuer: account.issuer, keys: keys.value });
  if (!verified.ok) return refuse(verified.error);
  const payload = verified.value;
  const subject = subjectOf(payload);
  const misfit = timeProblem(payload) ?? (isFor(payload, account.audience) ? null : 'audience');
  if (misfit !== null) return refuse({ reason: misfit, subject });
  const matched = matchClaims(rules.parse(JSON.parse(account.claims)), payload);
  if (!matched.ok) return refuse({ reason: 'claims', subject, claims: matched.error });
  return ok({ subject, tokenHash: await hashOf(token, account, payload), expiresAt: endOf(payload) });
}

const rules = z.record(z.string(), z.string());

function refuse(refusal: TokenRefusal): Result<never, TokenProblem> {
  return err({ kind: 'refusal', refusal });
}

/** What is wrong before anything is verified; null if a signature can tell. */
function unverifiedProblem(token: string, issuer: string): JoinRefusal | null {
  try {
    const { alg } = decodeProtectedHeader(token);
    if (alg === undefined || !PUBLIC_KEY_ALGORITHMS.includes(alg)) return 'algorithm';
    return decodeJwt(token).iss === issuer ? null : 'issuer';
  } catch {
    // Any error means that it is not a JWT.
    return 'not_a_token';
  }
}

async function keysOf(
  { outbound }: ServiceContext,
  { issuer, keys }: ServiceAccountRow['account'],
): Promise<Result<readonly JWK[], ApiError>> {
  return keys === null ? readIssuerKeys(outbound, issuer) : ok(storedKeys.parse(JSON.parse(keys)));
}

const storedKeys = z.array(z.record(z.string(), z.unknown()).and(z.object({ kty: z.string() })));

/** The payload of a token that one of the issuer's keys signed; its audience and claims are not checked yet. */
async function verify(
  { clock }: ServiceContext,
  token: string,
  { issuer, keys }: { readonly issuer: string; readonly keys: readonly JWK[] },
): Promise<Result<JWTPayload, TokenRefusal>> {
  const options = {
    issuer,
    requiredClaims: ['exp', 'iat'],
    maxTokenAge: MAX_TOKEN_SECONDS,
    clockTolerance: TOLERANCE_SECONDS,
    currentDate: new Date(clock.now()),
  };
  try {
    return ok(await verifyByKeys(token, keys, options));
  } catch (error) {
    return err(refusalOf(error));
  }
}

/** The signature is verified before the claims are read, so an error about a claim is about a token of the issuer. */
function refusalOf(error: unknown): TokenRefusal {
  if (error instanceof errors.JWTExpired) return { reason: 'expired', subject: subjectOf(error.payload) };
  if (error instanceof errors.JWTClaimValidationFailed) {
    const isEarly = (error.claim === 'nbf' || error.claim === 'iat') && error.reason === 'check_failed';
    return { reason: isEarly ? 'not_yet_valid' : 'not_a_token', subject: subjectOf(error.payload) };
  }
  // A key that cannot be used is an error of the platform, not of the library.
  if (error instanceof errors.JWTInvalid) return { reason: 'not_a_token' };
  return { reason: 'signature' };
}

function timeProblem(payload: JWTPayload): JoinRefusal | null {
  const { exp = 0, iat = 0 } = payload;
  return exp - iat > MAX_TOKEN_SECONDS ? 'lives_too_long' : null;
}

/** For this audience alone: who else it is for could use it here. */
function isFor({ aud }: JWTPayload, audience: string): boolean {
  const audiences = aud === undefined || typeof aud === 'string' ? [aud] : aud;
  return audiences.length === 1 && audiences[0] === audience;
}

/**
 * When every worker refuses it as expired. The one that deletes expired rows may have a clock ahead of the one that would take the
 * token again.
 */
function endOf({ exp = 0 }: JWTPayload): number {
  return Math.ceil(exp) + TOLERANCE_SECONDS + MOST_SKEW_MS / 1000;
}

const MAX_SUBJECT = 256;

/** The subject, for the audit log: one line. */
function subjectOf({ sub }: JWTPayload): string {
  return typeof sub === 'string' ? toShownLine(sub, MAX_SUBJECT) : '';
}

/**
 * By its id if it has one, otherwise by what was signed: the same content can be signed again with other bytes. Within the
 * enterprise, because another one may give keys of its own for the same issuer, and would otherwise use up ids that it guesses.
 */
function hashOf(
  token: string,
  { enterpriseId, issuer }: ServiceAccountRow['account'],
  { jti }: JWTPayload,
): Promise<string> {
  const id = typeof jti === 'string' && jti !== '' ? ['jti', jti] : ['signed', token.slice(0, token.lastIndexOf('.'))];
  return sha256Base64Url(JSON.stringify([enterpriseId, issuer, ...id]));
}
