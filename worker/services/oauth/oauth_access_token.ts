import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { type ConnectorCredentialRow, setLease, takeLease } from '../../store/connectors.ts';
import { providerFailed } from '../connectors/connector_problems.ts';
import { randomToken } from '../../kernel/encoding.ts';
import { revokeGivenUp } from './given_up_tokens.ts';
import { refreshGrant, type GrantFailureReason, type Tokens } from './oauth_grants.ts';
import { findOAuthSubject } from './oauth_subject.ts';
import { type HeldCredential, findHeldProblem, markRevoked, readHeld, storeTokens } from './oauth_tokens.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import type { Failure } from '../../../shared/model/failure.ts';

/** A valid access token. */
interface AccessToken {
  readonly token: Secret;
  /** Null: the provider did not say. */
  readonly expiresAt: string | null;
  /** The version of the vault entry that it came from. */
  readonly secret: { readonly id: string; readonly version: number };
}

/** How long before its expiry a token is refreshed; a short-lived one after half of its lifetime. */
const AHEAD_MS = 60_000;
/**
 * A token this close to its expiry is not sent, because it could expire on the way. For a short-lived one: its last
 * quarter.
 */
const MARGIN_MS = 10_000;
/** Longer than any call takes. After that another worker may take over the lease. */
export const LEASE_MS = 45_000;
/** Pause after a failure of the provider, however many requests wait. */
export const BACKOFF_MS = 5_000;
/** The holder and end of a credential's lease. */
export const BACKOFF = 'backoff';
export const LOOK_MS = 100;
const PATIENCE_MS = LEASE_MS + 5_000;

type Token = Result<AccessToken, ApiError>;

/**
 * Returns an access token, refreshed a minute before it expires. One worker refreshes, holding a lease in the database.
 * The others use the current token while it is valid, then wait for the new one. Refuses with `binding_required`,
 * `reauthorisation_required`, `oauth_provider_failed`.
 */
export async function accessToken(context: ServiceContext, subjectId: string): Promise<Token> {
  const patienceEnds = context.clock.now() + PATIENCE_MS;
  for (;;) {
    const held = await readHeld(context, subjectId);
    if (!held.ok) return held;
    const problem = findHeldProblem(held.value);
    if (problem !== null) return err(problem);
    const token = await tokenOf(context, held.value);
    if (token !== 'wait') return token;
    if (context.clock.now() >= patienceEnds) return err(notInTimeError(held.value));
    await context.clock.sleep(LOOK_MS);
  }
}

/**
 * The current token or a new one; `wait` while another worker refreshes it, or if the credential was replaced
 * meanwhile.
 */
async function tokenOf(context: ServiceContext, held: HeldCredential): Promise<Token | 'wait'> {
  const usable = usableToken(context, held);
  const { credential } = held;
  if (usable !== null && !isDue(context, credential)) return ok(usable);
  if (!credential.renewable) return usable === null ? reauthorise(context, held) : ok(usable);
  const isMine = await lease(context, credential);
  if (isMine) return refresh(context, held, usable);
  if (usable !== null) return ok(usable);
  return isBackingOff(context, credential) ? err(notInTimeError(held)) : 'wait';
}

function usableToken(context: ServiceContext, { bundle, credential, secret }: HeldCredential): AccessToken | null {
  const { expiresAt } = credential;
  if (bundle.accessToken === null) return null;
  const marginMs = Math.min(MARGIN_MS, lifetimeMs(credential) / 4);
  if (expiresAt !== null && context.clock.now() >= Date.parse(expiresAt) - marginMs) return null;
  return { token: bundle.accessToken, expiresAt, secret };
}

function isDue(context: ServiceContext, credential: ConnectorCredentialRow): boolean {
  const { expiresAt, renewable } = credential;
  const aheadMs = Math.min(AHEAD_MS, lifetimeMs(credential) / 2);
  return renewable && expiresAt !== null && context.clock.now() >= Date.parse(expiresAt) - aheadMs;
}

/** The time from storing a token to its expiry. */
function lifetimeMs({ expiresAt, updatedAt }: ConnectorCredentialRow): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Math.max(0, Date.parse(expiresAt) - Date.parse(updatedAt));
}

/** True if this call now holds the lease: nobody held it, and the credential was not changed since it was read. */
export async function lease(context: ServiceContext, credential: ConnectorCredentialRow): Promise<boolean> {
  const now = context.clock.now();
  if (credential.lease !== null && (credential.leaseUntil ?? 0) > now) return false;
  const taken = { id: randomToken(), until: now + LEASE_MS, now };
  return (await context.database.write(takeLease(context.database, credential, taken))).ok;
}

function isBackingOff(context: ServiceContext, { lease: holder, leaseUntil }: ConnectorCredentialRow): boolean {
  return holder === BACKOFF && (leaseUntil ?? 0) > context.clock.now();
}

async function refresh(
  context: ServiceContext,
  held: HeldCredential,
  usable: AccessToken | null,
): Promise<Token | 'wait'> {
  const { bundle, subject, credential } = held;
  if (bundle.refreshToken === null) return reauthorise(context, held);
  const renewal = renew(context, held, bundle.refreshToken);
  // Until they are stored, the new tokens exist only here, so a shutdown waits for this even if the caller disconnects.
  context.defer('the tokens of a refresh', () => renewal);
  const renewed = await renewal;
  if (renewed.ok) return renewed.value ? readStoredToken(context, subject.id) : 'wait';
  if (renewed.error.reason === 'revoked') return reauthorise(context, held);
  const until = context.clock.now() + BACKOFF_MS;
  await context.database.write(setLease(context.database, credential, { id: BACKOFF, until }));
  return usable === null ? err(providerFailed(subject, renewed.error.message)) : ok(usable);
}

/** Requests new tokens and stores them; false if the credential was replaced meanwhile. */
async function renew(
  context: ServiceContext,
  held: HeldCredential,
  refreshToken: Secret,
): Promise<Result<boolean, Failure<GrantFailureReason>>> {
  const grantee = { outbound: context.outbound, client: held.client, clientSecret: held.bundle.clientSecret };
  const granted = await refreshGrant(grantee, refreshToken);
  if (!granted.ok) return granted;
  const by = { change: 'refreshed' as const, actor: null, more: [] };
  const isStored = await storeTokens(context, held, granted.value, by);
  if (!isStored) await revokeOrphans(context, held, granted.value);
  return ok(isStored);
}

/**
 * Tokens that arrive when their credential is deleted are revoked. The refresh token before them is not, if it stays valid: whoever
 * deleted the credential decided about that one, and may have it elsewhere.
 */
async function revokeOrphans(
  context: ServiceContext,
  { subject, client, bundle }: HeldCredential,
  { accessToken: access, refreshToken }: Tokens,
): Promise<void> {
  const now = await findOAuthSubject(context, subject.id);
  if ((now?.credential ?? null) !== null) return;
  const events = {
    revoked: subject.event('tokens_revoked', null),
    notRevoked: subject.event('tokens_not_revoked', null),
  };
  const issued = { ...bundle, accessToken: access, refreshToken };
  revokeGivenUp(context, { client, bundle: issued, enterpriseId: subject.enterpriseId, events });
}

/**
 * The token that was just stored. Never requests another one: a provider that issues expired tokens would be called
 * forever.
 */
async function readStoredToken(context: ServiceContext, subjectId: string): Promise<Token> {
  const held = await readHeld(context, subjectId);
  if (!held.ok) return held;
  const usable = usableToken(context, held.value);
  if (usable !== null) return ok(usable);
  return err(providerFailed(held.value.subject, 'its provider issued a token that has already expired'));
}

async function reauthorise(context: ServiceContext, held: HeldCredential): Promise<Token | 'wait'> {
  const isMarked = await markRevoked(context, held);
  return isMarked ? err(held.subject.reauthorisationRequired()) : 'wait';
}

function notInTimeError({ subject }: HeldCredential): ApiError {
  return providerFailed(subject, 'its provider does not issue a new one; it is asked again in a few seconds');
}
