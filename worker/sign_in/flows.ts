import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { randomToken, sha256Base64Url } from '../kernel/encoding.ts';
import type { Caller } from '../kernel/caller.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { findSignInFlow, insertSignInFlow, type SignInFlowRow, takeSignInFlow } from '../store/sign_in_flows.ts';
import { type SignedIn, signInIdentity } from './sign_in_identity.ts';
import { type Linker, linkOver } from './linking.ts';
import type { AuthProvider, Identity, ProviderFailureReason } from './provider.ts';
import { word } from './provider_client.ts';
import { takeClientAttempt } from './throttle.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** How long a person may take at the provider. */
export const FLOW_SECONDS = 10 * 60;

/**
 * Limits the sign-ins that one client starts. Each is a row here and may call a provider that an enterprise chose. It
 * is enough for an office that shares one address.
 */
export const CLIENT_BEGINS = { kind: 'provider sign-in by client', most: 300, windowSeconds: 15 * 60 };

/** A started sign-in: where the browser goes, and its two cookies. */
interface BegunSignIn {
  readonly url: string;
  readonly state: string;
  readonly extraState: string;
}

/** How a sign-in is started. */
interface SignInPurpose {
  readonly redirectURL: string;
  readonly returnTo: string;
  /** The user whose account the identity is added to; null for a sign-in. */
  readonly linker: Linker | null;
  /** Null: the runtime does not provide it. */
  readonly clientAddress: string | null;
}

/** Starts at a provider. Refuses with `too_many_attempts`, `sign_in_failed`. */
export async function beginSignIn(
  context: ServiceContext,
  provider: AuthProvider,
  how: SignInPurpose,
): Promise<Result<BegunSignIn, ApiError>> {
  const allowed = await takeClientAttempt(context, CLIENT_BEGINS, how.clientAddress);
  if (!allowed.ok) return allowed;
  const state = randomToken();
  const begun = await provider.authorizationURL({ state, redirectURL: how.redirectURL });
  if (!begun.ok) return err(refusalOf(begun.error));
  const { url, extraState } = begun.value;
  const now = nowSeconds(context);
  const row: SignInFlowRow = {
    stateHash: await sha256Base64Url(state),
    extraHash: await sha256Base64Url(extraState),
    provider: provider.name,
    redirectUrl: how.redirectURL,
    returnTo: how.returnTo,
    expiresAt: now + FLOW_SECONDS,
    linkUserId: how.linker?.userId ?? null,
    linkSession: how.linker?.session ?? null,
  };
  const written = await context.database.write(insertSignInFlow(context.database, row, now));
  if (!written.ok) throw new Error('two sign-ins have the same state');
  return ok({ url, state, extraState });
}

/** Whether a sign-in with this state can still be completed. */
export async function hasSignIn(context: ServiceContext, { name }: AuthProvider, state: string): Promise<boolean> {
  const now = nowSeconds(context);
  return (await findSignInFlow(context.database, await sha256Base64Url(state), now))?.provider === name;
}

/** The request of a browser that returns from a provider. */
interface SignInAnswer {
  /** From the URL. */
  readonly state: string;
  readonly code: string | null;
  readonly error: string | null;
  readonly issuer: string | null;
  /** From the cookies; empty if there is none. */
  readonly cookieState: string;
  readonly extraState: string;
  /** The callback's URL. */
  readonly redirectURL: string;
  /** The browser's name for itself. */
  readonly client: string;
}

/** The outcome: a signed-in user, or an identity to add to the account of the user who started. */
export type FinishedFlow =
  | ({ readonly kind: 'signed_in'; readonly returnTo: string } & SignedIn)
  | { readonly kind: 'links'; readonly linker: Linker; readonly identity: Identity };

/**
 * Completes a sign-in. The state must match the browser's cookie, the provider and the callback URL; it is used up
 * before the provider is called. An identity to add is only given to the session that started: `caller` is the
 * browser's signed-in user. Refuses with `sign_in_expired`, `sign_in_failed` and the codes of `signInIdentity`.
 */
export async function finishSignIn(
  context: ServiceContext,
  provider: AuthProvider,
  answer: SignInAnswer,
  caller: Caller | null = null,
): Promise<Result<FinishedFlow, ApiError>> {
  const flow = await findMatchingFlow(context, provider, answer);
  if (flow === null) return err(expiredError());
  const taken = await context.database.write(takeSignInFlow(context.database, flow.stateHash));
  if (!taken.ok) return err(expiredError());
  const { linkUserId: userId, linkSession: session } = flow;
  const linker = userId === null || session === null ? null : { userId, session };
  if (linker !== null && (caller?.userId !== userId || caller.signIn !== session)) return err(linkOver());
  const identity = await identityOf(provider, answer);
  if (!identity.ok) return identity;
  if (linker !== null) return ok({ kind: 'links', linker, identity: identity.value });
  const signedIn = await signInIdentity(context, identity.value, { provider: provider.name, client: answer.client });
  return signedIn.ok ? ok({ kind: 'signed_in', ...signedIn.value, returnTo: flow.returnTo }) : signedIn;
}

/** The identity from the provider. */
async function identityOf(provider: AuthProvider, answer: SignInAnswer): Promise<Result<Identity, ApiError>> {
  const { code, error, state, extraState, redirectURL, issuer } = answer;
  if (code === null) {
    return err(apiError('sign_in_failed', `${provider.title} did not sign you in (${word(error ?? '')}): start again`));
  }
  const identity = await provider.exchange({ code, state, redirectURL, extraState, issuer });
  if (!identity.ok) return err(refusalOf(identity.error));
  if (!isSubject(identity.value.subject)) return err(noSubjectError(provider));
  const email = parseEmail(identity.value.email);
  return email === null ? err(noEmailError(provider)) : ok({ ...identity.value, email: email.address });
}

const MAX_SUBJECT = 255;

/** A subject identifies a person and is stored. OpenID Connect Core section 2 allows at most 255 ASCII characters. */
function isSubject(text: string): boolean {
  return text.length <= MAX_SUBJECT && /^[\x20-\x7e]+$/.test(text);
}

/** The flow that matches every part of the answer; null on any mismatch. */
async function findMatchingFlow(
  context: ServiceContext,
  provider: AuthProvider,
  answer: SignInAnswer,
): Promise<SignInFlowRow | null> {
  const [stateHash, cookieHash, extraHash] = await Promise.all(
    [answer.state, answer.cookieState, answer.extraState].map((text) => sha256Base64Url(text)),
  );
  if (stateHash === undefined || stateHash !== cookieHash) return null;
  const flow = await findSignInFlow(context.database, stateHash, nowSeconds(context));
  if (flow === null || flow.extraHash !== extraHash) return null;
  return flow.provider === provider.name && flow.redirectUrl === answer.redirectURL ? flow : null;
}

function expiredError(): ApiError {
  const message =
    'this sign-in was started in another browser, was used already, or has expired after ten minutes: sign in again';
  return apiError('sign_in_expired', message);
}

function noEmailError({ title }: AuthProvider): ApiError {
  return apiError('email_required', `${title} sent no usable email address; nobody was signed in`);
}

function noSubjectError({ title }: AuthProvider): ApiError {
  return apiError('sign_in_failed', `${title} sent no user id of 1 to 255 characters; nobody was signed in`);
}

function refusalOf({ reason, message }: Failure<ProviderFailureReason>): ApiError {
  return apiError(
    reason === 'email_required' ? 'email_required' : 'sign_in_failed',
    `${message}; nobody was signed in`,
  );
}
