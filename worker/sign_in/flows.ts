import { parseEmail } from '../../shared/model/email.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { randomToken, sha256Base64Url } from '../services/encoding.ts';
import type { ServiceContext } from '../services/service_context.ts';
import { findSignInFlow, insertSignInFlow, type SignInFlowRow, takeSignInFlow } from '../store/sign_in_flows.ts';
import { signInIdentity } from './accounts.ts';
import type { AuthProvider, ProviderError } from './provider.ts';
import { word } from './provider_client.ts';

/** How long a person may take at the provider. */
export const FLOW_SECONDS = 10 * 60;

/** A sign-in that has begun: where the browser goes, and what it keeps in two cookies. */
export interface BegunSignIn {
  readonly url: string;
  readonly state: string;
  readonly extraState: string;
}

/** Begins at a provider. Refuses with `sign_in_failed`. */
export async function beginSignIn(
  context: ServiceContext,
  provider: AuthProvider,
  how: { readonly redirectURL: string; readonly returnTo: string },
): Promise<Result<BegunSignIn, ApiError>> {
  const state = randomToken();
  const begun = await provider.authorizationURL({ state, redirectURL: how.redirectURL });
  if (!begun.ok) return err(refusalOf(begun.error));
  const { url, extraState } = begun.value;
  const now = Math.floor(context.clock.now() / 1000);
  const row: SignInFlowRow = {
    stateHash: await sha256Base64Url(state),
    extraHash: await sha256Base64Url(extraState),
    provider: provider.name,
    redirectUrl: how.redirectURL,
    returnTo: how.returnTo,
    expiresAt: now + FLOW_SECONDS,
    linkUserId: null,
    linkSession: null,
  };
  const written = await context.database.write(insertSignInFlow(context.database, row, now));
  if (!written.ok) throw new Error('two sign-ins have one state');
  return ok({ url, state, extraState });
}

/** What a browser brings back from a provider. */
export interface SignInAnswer {
  /** Of the URL. */
  readonly state: string;
  readonly code: string | null;
  readonly error: string | null;
  readonly issuer: string | null;
  /** Of the cookies; empty where there is none. */
  readonly cookieState: string;
  readonly extraState: string;
  /** Where the answer came to. */
  readonly redirectURL: string;
}

/**
 * Ends a sign-in. The state has to be the one this browser keeps, of this provider and this callback URL; it is used up
 * before the provider is asked. Refuses with `sign_in_expired`, `sign_in_failed` and what `signInIdentity` refuses with.
 */
export async function finishSignIn(
  context: ServiceContext,
  provider: AuthProvider,
  answer: SignInAnswer,
): Promise<Result<{ readonly userId: string; readonly returnTo: string }, ApiError>> {
  const flow = await matchingFlow(context, provider, answer);
  if (flow === null) return err(expired());
  const taken = await context.database.write(takeSignInFlow(context.database, flow.stateHash));
  if (!taken.ok) return err(expired());
  const { code, error, state, extraState, redirectURL, issuer } = answer;
  if (code === null) {
    return err(apiError('sign_in_failed', `${provider.title} did not sign you in (${word(error ?? '')}): begin again`));
  }
  const identity = await provider.exchange({ code, state, redirectURL, extraState, issuer });
  if (!identity.ok) return err(refusalOf(identity.error));
  const email = parseEmail(identity.value.email);
  if (email === null) return err(noEmail(provider));
  const known = { ...identity.value, email: email.address };
  const signedIn = await signInIdentity(context, known, { provider: provider.name });
  return signedIn.ok ? ok({ userId: signedIn.value.userId, returnTo: flow.returnTo }) : signedIn;
}

/** The flow that everything in the answer fits; null when one thing does not, whichever. */
async function matchingFlow(
  context: ServiceContext,
  provider: AuthProvider,
  answer: SignInAnswer,
): Promise<SignInFlowRow | null> {
  const [stateHash, cookieHash, extraHash] = await Promise.all(
    [answer.state, answer.cookieState, answer.extraState].map((text) => sha256Base64Url(text)),
  );
  if (stateHash === undefined || stateHash !== cookieHash) return null;
  const flow = await findSignInFlow(context.database, stateHash, Math.floor(context.clock.now() / 1000));
  if (flow === null || flow.extraHash !== extraHash) return null;
  return flow.provider === provider.name && flow.redirectUrl === answer.redirectURL ? flow : null;
}

function expired(): ApiError {
  const message =
    'this sign-in was not begun in this browser, was used already, or its ten minutes are over: sign in again';
  return apiError('sign_in_expired', message);
}

function noEmail({ title }: AuthProvider): ApiError {
  return apiError('email_required', `${title} gave no email address that can be used; nobody was signed in`);
}

function refusalOf({ reason, message }: ProviderError): ApiError {
  return apiError(
    reason === 'email_required' ? 'email_required' : 'sign_in_failed',
    `${message}; nobody was signed in`,
  );
}
