import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { type ConnectorCredentialRow, setLease, takeLease } from '../../store/connectors.ts';
import { providerFailed } from '../connectors/connector_problems.ts';
import { randomToken } from '../../kernel/encoding.ts';
import { type GrantError, refreshGrant } from './oauth_grants.ts';
import { type HeldCredential, heldProblem, markRevoked, readHeld, storeTokens } from './oauth_tokens.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** An access token that may be used now. */
export interface AccessToken {
  readonly token: Secret;
  /** Null: the provider did not say. */
  readonly expiresAt: string | null;
  /** Of the vault entry that it was taken from. */
  readonly secret: { readonly id: string; readonly version: number };
}

/** How long before its end a token is refreshed; one that lives shortly, when half of its time is over. */
const AHEAD_MS = 60_000;
/** A token this near its end is not sent: it would be over when it arrives. Of one that lives shortly, its last quarter. */
const MARGIN_MS = 10_000;
/** Longer than any call takes; the lease of a worker that is gone is another's after that. */
export const LEASE_MS = 45_000;
/** A provider that fails is not asked again at once, however many requests wait. */
const BACKOFF_MS = 5_000;
/** Who has the lease of a credential then. */
export const BACKOFF = 'backoff';
const LOOK_MS = 100;
const PATIENCE_MS = LEASE_MS + 5_000;

type Token = Result<AccessToken, ApiError>;

/**
 * An access token, refreshed a minute ahead of its end. One worker refreshes, by a lease in the database; the others use the
 * token there is while it lasts, and wait for the new one after. Refuses with `binding_required`,
 * `reauthorisation_required`, `oauth_provider_failed`.
 */
export async function accessToken(context: ServiceContext, subjectId: string): Promise<Token> {
  const patienceEnds = context.clock.now() + PATIENCE_MS;
  for (;;) {
    const held = await readHeld(context, subjectId);
    if (!held.ok) return held;
    const problem = heldProblem(held.value);
    if (problem !== null) return err(problem);
    const token = await tokenOf(context, held.value);
    if (token !== 'wait') return token;
    if (context.clock.now() >= patienceEnds) return err(notInTime(held.value));
    await context.clock.sleep(LOOK_MS);
  }
}

/** The token there is, or a new one; `wait` while another worker asks for it, or when the credential was replaced meanwhile. */
async function tokenOf(context: ServiceContext, held: HeldCredential): Promise<Token | 'wait'> {
  const usable = usableToken(context, held);
  const { credential } = held;
  if (usable !== null && !isDue(context, credential)) return ok(usable);
  if (!credential.renewable) return usable === null ? reauthorise(context, held) : ok(usable);
  const isMine = await lease(context, credential);
  if (isMine) return refresh(context, held, usable);
  if (usable !== null) return ok(usable);
  return isBackingOff(context, credential) ? err(notInTime(held)) : 'wait';
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

/** From when a token was stored to its end. */
function lifetimeMs({ expiresAt, updatedAt }: ConnectorCredentialRow): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Math.max(0, Date.parse(expiresAt) - Date.parse(updatedAt));
}

/** True when the lease is ours now: nobody had it, and the credential is still the one that was read. */
async function lease(context: ServiceContext, credential: ConnectorCredentialRow): Promise<boolean> {
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
  // Until it is stored, what the provider gives is nowhere else: a caller that goes and a program that stops wait for it.
  context.defer('the tokens of a refresh', () => renewal);
  const renewed = await renewal;
  if (renewed.ok) return renewed.value ? storedToken(context, subject.id) : 'wait';
  if (renewed.error.reason === 'revoked') return reauthorise(context, held);
  const until = context.clock.now() + BACKOFF_MS;
  await context.database.write(setLease(context.database, credential, { id: BACKOFF, until }));
  return usable === null ? err(providerFailed(subject, renewed.error.message)) : ok(usable);
}

/** Asks for new tokens and stores them; false when the credential was replaced meanwhile. */
async function renew(
  context: ServiceContext,
  held: HeldCredential,
  refreshToken: Secret,
): Promise<Result<boolean, GrantError>> {
  const grantee = { outbound: context.outbound, client: held.client, clientSecret: held.bundle.clientSecret };
  const granted = await refreshGrant(grantee, refreshToken);
  if (!granted.ok) return granted;
  const by = { happening: 'refreshed' as const, actor: null, more: [] };
  return ok(await storeTokens(context, held, granted.value, by));
}

/** The token that was just stored. Never asks for another: a provider whose tokens are over at once would be asked for ever. */
async function storedToken(context: ServiceContext, subjectId: string): Promise<Token> {
  const held = await readHeld(context, subjectId);
  if (!held.ok) return held;
  const usable = usableToken(context, held.value);
  if (usable !== null) return ok(usable);
  return err(providerFailed(held.value.subject, 'its provider gave a token that is over already'));
}

async function reauthorise(context: ServiceContext, held: HeldCredential): Promise<Token | 'wait'> {
  const isMarked = await markRevoked(context, held);
  return isMarked ? err(held.subject.reauthorisationRequired()) : 'wait';
}

function notInTime({ subject }: HeldCredential): ApiError {
  return providerFailed(subject, 'its provider does not give a new one; it is asked again in a few seconds');
}
