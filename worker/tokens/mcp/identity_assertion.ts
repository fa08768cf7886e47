import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload } from 'jose';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { MCP_SCOPE } from '../../../shared/wire/mcp/mcp_clients.ts';
import { sha256Base64Url } from '../../kernel/encoding.ts';
import { MOST_SKEW_MS } from '../../kernel/leased_renewal.ts';
import { isSameIssuer } from '../../sign_in/own_issuer.ts';
import type { SignInContext } from '../../sign_in/sign_in_context.ts';
import { takeClientAttempt, type Throttle } from '../../sign_in/throttle.ts';
import { listOidcOfIssuer } from '../../store/enterprise_settings.ts';
import { readIssuerKeys } from '../join/issuer_keys.ts';
import { PUBLIC_KEY_ALGORITHMS, verifyByKeys } from '../verify_by_keys.ts';
import type { AssertionRefusal } from './assertion_refusal.ts';
import { isResource, mcpResource } from './authorisation_request.ts';

const TYPE = 'oauth-id-jag+jwt';
/** One that lives longer could be stolen and used long after it was made. The example of the draft lives 1,000 seconds. */
const MAX_SECONDS = 20 * 60;
/** Clocks differ. */
const TOLERANCE_SECONDS = 30;
/** A subject of OpenID Connect. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;
/** Of ids, so that nobody fills the audit log with them. */
const MAX_ID = 1_000;
/**
 * Claims that limit an assertion in a way that is not understood here: a key that has to be proved, an actor, details of what is
 * allowed, and a tenant within which alone the subject is unique. To ignore them would give more than the provider meant.
 */
const LIMITING = ['cnf', 'act', 'authorization_details', 'tenant'];

/**
 * Reads of one provider's keys for one network: when none are held, and by an unknown key. The service of a client asks from one network
 * for people of many enterprises, so the providers are counted apart.
 */
const KEY_READS: Throttle = { kind: 'keys of mcp assertions', most: 60, windowSeconds: 10 * 60 };

/** What a client shows, and where the request came from. */
export interface ShownAssertion {
  readonly assertion: string;
  /** The client that shows it. */
  readonly clientId: string;
  /** The scopes that it asks for; null if it does not say. */
  readonly scope: string | null;
  readonly clientAddress: string | null;
}

/** An assertion that a provider of some enterprise signed for this server, this resource and this client. */
export interface CheckedAssertion {
  readonly issuer: string;
  readonly subject: string;
  /** The enterprise that it is for, by its id or slug; null if it does not say. */
  readonly tenant: string | null;
  readonly hash: string;
  /** When every worker refuses it as expired, in seconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * Checks an identity assertion (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant): algorithm, issuer, signature, type,
 * times and claims, in this order. Whose it is and whether it was used is not checked here. Nothing is called for an issuer that no
 * enterprise has set.
 */
export async function checkAssertion(
  context: SignInContext,
  shown: ShownAssertion,
): Promise<Result<CheckedAssertion, AssertionRefusal>> {
  const issuer = await findIssuer(context, shown.assertion);
  if (issuer === null) return err({ reason: 'not_verified' });
  const verified = await verify(context, shown, issuer);
  if (!verified.ok) return verified;
  const payload = verified.value;
  const claim = wrongClaim(payload, { publicUrl: context.publicUrl ?? '', clientId: shown.clientId });
  if (claim !== null) return err({ reason: 'claim', claim });
  const asked = shown.scope ?? undefined;
  if (!isInScope(payload['scope']) || !isInScope(asked)) return err({ reason: 'scope' });
  const { sub: subject = '', jti = '', exp = 0 } = payload;
  const tenant = payload['aud_tenant'];
  return ok({
    issuer,
    subject,
    tenant: typeof tenant === 'string' ? tenant : null,
    hash: await sha256Base64Url(JSON.stringify([issuer, jti])),
    // The worker that deletes expired rows may have a clock ahead of the one that would take the assertion again.
    expiresAt: Math.ceil(exp) + TOLERANCE_SECONDS + MOST_SKEW_MS / 1000,
  });
}

/** The issuer that it names, if that is the own OpenID provider of an enterprise. */
async function findIssuer({ database }: SignInContext, assertion: string): Promise<string | null> {
  const named = namedIssuer(assertion);
  if (named === null) return null;
  const set = await listOidcOfIssuer(database, named);
  return set.some(({ issuer }) => isSameIssuer(issuer, named)) ? named : null;
}

function namedIssuer(assertion: string): string | null {
  try {
    const { alg } = decodeProtectedHeader(assertion);
    const { iss } = decodeJwt(assertion);
    const isUsable = alg !== undefined && PUBLIC_KEY_ALGORITHMS.includes(alg);
    // The type of the library is not checked by it: a list of one URL could be parsed too.
    return isUsable && typeof iss === 'string' && URL.canParse(iss) ? iss : null;
  } catch {
    // Any error means that it is not a JWT.
    return null;
  }
}

/** By the keys that were read lately, and if they do not verify it, by those that the provider publishes now. */
async function verify(
  context: SignInContext,
  shown: ShownAssertion,
  issuer: string,
): Promise<Result<JWTPayload, AssertionRefusal>> {
  const { issuers } = context.signIn;
  const held = issuers.findKeys(issuer);
  const byHeld = held === null ? null : await verifySigned(context, shown.assertion, { issuer, keys: held });
  if (byHeld !== null && (byHeld.ok || byHeld.error.reason !== 'not_verified')) return byHeld;
  const allowed = await takeClientAttempt(context, KEY_READS, shown.clientAddress, issuer);
  const read = allowed.ok ? await readIssuerKeys(context.outbound, issuer) : allowed;
  if (!read.ok) return err({ reason: 'not_verified' });
  issuers.keepKeys(issuer, read.value);
  return verifySigned(context, shown.assertion, { issuer, keys: read.value });
}

async function verifySigned(
  { clock }: SignInContext,
  assertion: string,
  { issuer, keys }: { readonly issuer: string; readonly keys: Parameters<typeof verifyByKeys>[1] },
): Promise<Result<JWTPayload, AssertionRefusal>> {
  const expected = {
    typ: TYPE,
    issuer,
    requiredClaims: ['exp', 'iat', 'jti', 'sub'],
    maxTokenAge: MAX_SECONDS,
    clockTolerance: TOLERANCE_SECONDS,
    currentDate: new Date(clock.now()),
  };
  try {
    return ok(await verifyByKeys(assertion, keys, expected));
  } catch (error) {
    // The signature is verified before the claims are read. Any other error means that no key verifies it.
    const isClaim = error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed;
    return err(isClaim ? { reason: 'claim', claim: error.claim } : { reason: 'not_verified' });
  }
}

/** The claim by which a signed assertion is not for this client and resource, or limited; null if there is none. */
function wrongClaim(
  payload: JWTPayload,
  { publicUrl, clientId }: { readonly publicUrl: string; readonly clientId: string },
): string | null {
  const { sub, jti, exp = 0, iat = 0 } = payload;
  const tenant = payload['aud_tenant'];
  const wrong: Readonly<Record<string, boolean>> = {
    aud: !isResource(only(payload.aud) ?? '', publicUrl),
    client_id: payload['client_id'] !== clientId || clientId.length > MAX_ID,
    resource: !isResource(only(payload['resource']) ?? '', mcpResource(publicUrl)),
    exp: exp - iat > MAX_SECONDS,
    sub: typeof sub !== 'string' || !SUBJECT.test(sub),
    jti: typeof jti !== 'string' || jti === '' || jti.length > MAX_ID,
    aud_tenant: tenant !== undefined && typeof tenant !== 'string',
  };
  const limits = LIMITING.filter((name) => payload[name] !== undefined);
  return [...Object.keys(wrong).filter((name) => wrong[name] === true), ...limits][0] ?? null;
}

/** The one value that a claim has: whoever else it is for could use the assertion here. */
function only(claim: unknown): string | null {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : null;
}

/** None means the default scope, which is the only one (RFC 6749 section 3.3). */
function isInScope(scope: unknown): boolean {
  return scope === undefined || (typeof scope === 'string' && scope.split(' ').includes(MCP_SCOPE));
}
