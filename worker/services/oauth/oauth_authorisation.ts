import { readClocks } from '../../../shared/model/clock.ts';
import { twoClocks } from '../../kernel/clock.ts';
import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { authorizationLink } from './authorization_link.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { AuthorizeReply } from '../../../shared/wire/connectors/connector_credentials.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { findFlow, type OAuthFlowRow, takeFlow } from '../../store/oauth_flows.ts';
import type { Caller } from '../../kernel/caller.ts';
import { providerFailed } from '../connectors/connector_problems.ts';
import { writableConnector } from '../connectors/connectors.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import type { OAuthClient } from './oauth_client.ts';
import { beginFlow, resumeFlow } from './oauth_flow.ts';
import { granteeOf } from './oauth_bundle.ts';
import { authoriseDevice, codeGrant } from './oauth_grants.ts';
import { type HeldCredential, readHeld, storeTokens } from './oauth_tokens.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';

export const CALLBACK_PATH = '/auth/connectors/callback';

/** How long an authorisation link is valid. */
const FLOW_SECONDS = 10 * 60;
/** Upper limit for a device code, even if the provider allows longer. */
const MOST_DEVICE_SECONDS = 30 * 60;
const MOST_INTERVAL_SECONDS = 60;

/**
 * Starts an authorisation: a link for a browser, or a code for a device. `origin` is that of the caller's own call.
 * Refuses with `not_found`, `admin_required`, `invalid_input`, `binding_required`, `oauth_provider_failed`.
 */
export async function beginAuthorisation(
  context: ServiceContext,
  caller: Caller,
  connectorId: string,
  how: RedirectOrigin & { readonly grant?: 'browser' | 'device' | undefined },
): Promise<Result<AuthorizeReply, ApiError>> {
  const row = await writableConnector(context, caller, connectorId);
  if (!row.ok) return row;
  if (row.value.connector.credentialKind !== 'oauth2') return err(noOAuthError());
  const held = await readHeld(context, connectorId);
  if (!held.ok) return held;
  const { client } = held.value;
  const grant = how.grant ?? (client.authorization_url === null ? 'device' : 'browser');
  if (grant === 'device') return beginDevice(context, caller, held.value);
  if (client.authorization_url === null) return err(noWayError('browser', 'authorization_url'));
  return ok(await beginBrowser(context, caller, held.value, client.authorization_url, how));
}

/** The redirect URL of the provider. */
export interface RedirectOrigin {
  /** The origin of the redirect URL. */
  readonly origin: string;
  /** Started by a browser at the local console's host name; the callback then redirects there. */
  readonly inConsole: boolean;
}

/**
 * Creates a state for an authorisation that starts at the console's host name and returns at another one. It cannot be
 * forged, because the whole state is stored.
 */
const CONSOLE_STATE = 'console.';

/** Whether the authorisation with this state started in a local console. */
export function isOfConsole(state: string): boolean {
  return state.startsWith(CONSOLE_STATE);
}

/** Whether the authorisation with this state can still be completed. */
export async function hasFlow(context: ServiceContext, state: string): Promise<boolean> {
  return (await findFlow(context.database, await sha256Base64Url(state), nowSeconds(context))) !== null;
}

/** Starts an authorisation in the browser and returns the link to open. */
export async function beginBrowser(
  context: ServiceContext,
  caller: Caller,
  held: HeldCredential,
  authorizationUrl: string,
  { origin, inConsole }: RedirectOrigin,
): Promise<Extract<AuthorizeReply, { grant: 'browser' }>> {
  const [state, verifier] = [(inConsole ? CONSOLE_STATE : '') + randomToken(), generateRandomCodeVerifier()];
  const redirectUri = origin + CALLBACK_PATH;
  const expiresAt = await beginFlow(context, caller, held, {
    id: await sha256Base64Url(state),
    grant: 'browser',
    redirectUri,
    secret: new Secret(verifier),
    seconds: FLOW_SECONDS,
    intervalSeconds: 0,
  });
  const challenge = await calculatePKCECodeChallenge(verifier);
  const { client_id: clientId, scopes, resource } = held.client;
  const url = authorizationLink(authorizationUrl, {
    clientId,
    redirectURL: redirectUri,
    state,
    challenge,
    more: { ...(scopes.length > 0 && { scope: scopes.join(' ') }), ...(resource !== undefined && { resource }) },
  });
  return { grant: 'browser', authorization_url: url, redirect_uri: redirectUri, expires_at: expiresAt };
}

async function beginDevice(
  context: ServiceContext,
  caller: Caller,
  held: HeldCredential,
): Promise<Result<AuthorizeReply, ApiError>> {
  if (held.client.device_authorization_url === null) return err(noWayError('device', 'device_authorization_url'));
  const device = await authoriseDevice(granteeOf(context, held));
  if (!device.ok) return err(providerFailed(held.subject, device.error.message));
  const { deviceCode, userCode, verificationUri, verificationUriComplete, expiresIn } = device.value;
  const intervalSeconds = Math.min(Math.max(1, device.value.intervalSeconds), MOST_INTERVAL_SECONDS);
  const expiresAt = await beginFlow(context, caller, held, {
    id: randomToken(),
    grant: 'device',
    redirectUri: null,
    secret: deviceCode,
    seconds: Math.min(expiresIn, MOST_DEVICE_SECONDS),
    intervalSeconds,
  });
  return ok({
    grant: 'device',
    user_code: userCode,
    verification_uri: verificationUri,
    verification_uri_complete: verificationUriComplete,
    interval_seconds: intervalSeconds,
    expires_at: expiresAt,
  });
}

/** The parameters of a provider's redirect. */
interface Callback {
  readonly state: string;
  readonly code: string | null;
  /** The provider's error code, if there is no code. */
  readonly error: string | null;
  /** The provider's issuer name, if it sends it (RFC 9207). */
  readonly issuer: string | null;
}

/** The connector or server that an authorisation is for. */
interface FinishedFor {
  /** `con_…` or `mcp_…` */
  readonly id: string;
  readonly name: string;
}

/** Why an authorisation failed. */
interface NotFinished {
  readonly message: string;
  /** The connector or server; null if the caller may not see it or it has expired. */
  readonly id: string | null;
}

/** The outcome of an authorisation, for the person at the browser. */
type Finished = Result<FinishedFor, NotFinished>;

/**
 * Completes an authorisation with the parameters of the callback. It uses up the state, whatever the outcome. `browser`
 * is the signed-in user. A hosted control plane and a console require the user who started the authorisation, so that a
 * link cannot trick somebody into giving their tokens away, and seeing the callback URL is not enough to complete it.
 */
export async function finishAuthorisation(
  context: ServiceContext,
  callback: Callback,
  browser: Pick<Caller, 'userId'> | null,
): Promise<Finished> {
  const flow = await findFlow(context.database, await sha256Base64Url(callback.state), nowSeconds(context));
  if (flow === null || flow.grant !== 'browser') return err({ message: OVER, id: null });
  const isForBrowser = context.local === null || isOfConsole(callback.state);
  if (isForBrowser && browser?.userId !== flow.userId) return err({ message: OTHER_PERSON, id: null });
  const taken = await context.database.write(takeFlow(context.database, flow.id));
  if (!taken.ok) return err({ message: OVER, id: flow.connectorId });
  const name = await redeemCode(context, flow, callback);
  return name.ok ? ok({ id: flow.connectorId, name: name.value }) : err({ message: name.error, id: flow.connectorId });
}

/** Exchanges the code for tokens and returns the name of the connector or server. The error is a sentence. */
async function redeemCode(
  context: ServiceContext,
  flow: OAuthFlowRow,
  callback: Callback,
): Promise<Result<string, string>> {
  const resumed = await resumeFlow(context, flow);
  if (!resumed.ok) return resumed;
  const { by, held, secret: verifier } = resumed.value;
  if (!isFromProvider(held.client, callback.issuer)) return err(OTHER_PROVIDER);
  if (callback.code === null) return err(`the provider refused: ${wordOf(callback.error)}`);
  const redirectUri = flow.redirectUri ?? '';
  const asked = readClocks(twoClocks(context.clock));
  const granted = await codeGrant(granteeOf(context, held), { code: callback.code, redirectUri, verifier });
  if (!granted.ok) return err(granted.error.message);
  const stored = { change: 'stored' as const, by, asked, more: [] };
  const isStored = await storeTokens(context, { ...held, bundle: withoutTokens(held) }, granted.value, stored);
  return isStored ? ok(held.subject.name) : err('the credential was replaced meanwhile: start the authorisation again');
}

/** A new authorisation keeps nothing of the previous one: its refresh token belongs to another grant. */
function withoutTokens({ bundle }: HeldCredential): HeldCredential['bundle'] {
  return { ...bundle, accessToken: null, refreshToken: null };
}

/** A code of another provider must not be sent to this one (RFC 9207 section 2.4). */
function isFromProvider(client: OAuthClient, issuer: string | null): boolean {
  const { authorization_url: authorizationUrl } = client;
  if (issuer === null) return client.names_itself !== true;
  if (client.issuer !== undefined) return issuer === client.issuer;
  if (authorizationUrl === null || !URL.canParse(issuer)) return false;
  return new URL(issuer).origin === new URL(authorizationUrl).origin;
}

function wordOf(error: string | null): string {
  return (error ?? '').replaceAll(/[^\w.-]/g, '').slice(0, 64) || 'it sent no code';
}

const OVER = 'this authorisation was used already or has expired after ten minutes: start again';
const OTHER_PERSON = 'sign in as the user who started this authorisation, and open the link again';
const OTHER_PROVIDER = 'another provider than the requested one answered: nothing was stored';

function noOAuthError(): ApiError {
  return apiError('invalid_input', 'this connector uses an API key: there is nothing to authorise');
}

function noWayError(grant: string, field: string): ApiError {
  const message = `is "${grant}", but the client has no ${field}: store it with PUT .../credential`;
  return apiError('invalid_input', `grant ${message}`, { fields: [{ field: 'grant', message }] });
}
