import { readClocks } from '../../../shared/model/clock.ts';
import { twoClocks } from '../../kernel/clock.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { type ConnectorCredentialRow, setLease, takeLease } from '../../store/connectors.ts';
import { providerFailed } from '../connectors/connector_problems.ts';
import {
  BACKOFF,
  BACKOFF_MS,
  currentEnd,
  isOfFuture,
  isRenewalDue,
  isUsable,
  type Lifespan,
  type Renewal,
  renewedValue,
} from '../../kernel/leased_renewal.ts';
import { revokeGivenUp } from './given_up_tokens.ts';
import { granteeOf } from './oauth_bundle.ts';
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

type Token = Result<AccessToken, ApiError>;

/**
 * Returns an access token, refreshed a minute before it expires; see {@link renewedValue}. Refuses with `binding_required`,
 * `reauthorisation_required`, `oauth_provider_failed`.
 */
export async function accessToken(context: ServiceContext, subjectId: string): Promise<Token> {
  return renewedValue(context, async () => {
    const held = await readHeld(context, subjectId);
    if (!held.ok) return { answer: held };
    const problem = findHeldProblem(held.value);
    if (problem !== null) return { answer: err(problem) };
    const usable = usableToken(context, held.value);
    const { credential } = held.value;
    if (usable === null && !credential.renewable && isOfFuture(context, lifespanOf(credential))) {
      return { answer: err(providerFailed(held.value.subject, CLOCK_IS_BEHIND)) };
    }
    if (!credential.renewable) return { answer: usable === null ? await reauthorise(context, held.value) : ok(usable) };
    return { renewal: renewalOf(context, held.value, usable) };
  });
}

/** The token may be valid, so nobody is asked to authorise again. */
const CLOCK_IS_BEHIND =
  'its token was stored at a time that is yet to come by the clock of the control plane: correct that clock';

function renewalOf(context: ServiceContext, held: HeldCredential, usable: AccessToken | null): Renewal<AccessToken> {
  const { credential } = held;
  return {
    row: credential,
    usable,
    isDue: isRenewalDue(context, credential.connectorId, lifespanOf(credential)),
    takeLease: (lease) => takeLease(context.database, credential, lease),
    renew: () => refresh(context, held),
    notInTime: () => notInTimeError(held),
  };
}

function usableToken(context: ServiceContext, { bundle, credential, secret }: HeldCredential): AccessToken | null {
  const span = lifespanOf(credential);
  if (bundle.accessToken === null || !isUsable(context, credential.connectorId, span)) return null;
  return { token: bundle.accessToken, expiresAt: currentEnd(context, credential.connectorId, span), secret };
}

function lifespanOf({ expiresAt, updatedAt, renewable }: ConnectorCredentialRow): Lifespan {
  return { storedAt: updatedAt, expiresAt, isLast: !renewable };
}

async function refresh(context: ServiceContext, held: HeldCredential): Promise<Token | 'wait'> {
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
  // The provider may have taken longer than the token still had.
  const usable = usableToken(context, held);
  return usable === null ? err(providerFailed(subject, renewed.error.message)) : ok(usable);
}

/** Requests new tokens and stores them; false if the credential was replaced meanwhile. */
async function renew(
  context: ServiceContext,
  held: HeldCredential,
  refreshToken: Secret,
): Promise<Result<boolean, Failure<GrantFailureReason>>> {
  const asked = readClocks(twoClocks(context.clock));
  const granted = await refreshGrant(granteeOf(context, held), refreshToken);
  if (!granted.ok) return granted;
  const stored = { change: 'refreshed' as const, by: null, asked, more: [] };
  const isStored = await storeTokens(context, held, granted.value, stored);
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
