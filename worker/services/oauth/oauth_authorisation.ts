import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { AuthorizeReply } from '../../../shared/wire/connector_credentials.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { findFlow, type OAuthFlowRow, takeFlow } from '../../store/oauth_flows.ts';
import type { Caller } from '../../kernel/caller.ts';
import { providerFailed } from '../connectors/connector_problems.ts';
import { writableConnector } from '../connectors/connectors.ts';
import { randomToken, sha256Base64Url } from '../../kernel/encoding.ts';
import type { OAuthClient } from './oauth_client.ts';
import { beginFlow, nowSeconds, resumeFlow } from './oauth_flow.ts';
import { authoriseDevice, codeGrant, type Grantee } from './oauth_grants.ts';
import { type HeldCredential, readHeld, storeTokens } from './oauth_tokens.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

export const CALLBACK_PATH = '/auth/connectors/callback';

/** How long a link may be open in a browser. */
const FLOW_SECONDS = 10 * 60;
/** A provider may say longer; nobody types a code for an hour. */
const MOST_DEVICE_SECONDS = 30 * 60;
const MOST_INTERVAL_SECONDS = 60;

/**
 * Begins an authorisation: a link for a browser, or a code for a device. `origin` is that of the caller's own call. Refuses
 * with `not_found`, `admin_required`, `invalid_input`, `binding_required`, `oauth_provider_failed`.
 */
export async function beginAuthorisation(
  context: ServiceContext,
  caller: Caller,
  connectorId: string,
  how: RedirectOrigin & { readonly grant?: 'browser' | 'device' | undefined },
): Promise<Result<AuthorizeReply, ApiError>> {
  const row = await writableConnector(context, caller, connectorId);
  if (!row.ok) return row;
  if (row.value.connector.credentialKind !== 'oauth2') return err(noOAuth());
  const held = await readHeld(context, connectorId);
  if (!held.ok) return held;
  const { client } = held.value;
  const grant = how.grant ?? (client.authorization_url === null ? 'device' : 'browser');
  if (grant === 'device') return beginDevice(context, caller, held.value);
  if (client.authorization_url === null) return err(noWay('browser', 'authorization_url'));
  return ok(await beginBrowser(context, caller, held.value, client.authorization_url, how));
}

/** Where a provider sends the browser back to. */
export interface RedirectOrigin {
  /** What the redirect URL is under. */
  readonly origin: string;
  /** Begun by a browser at the name of a local console, which the callback then hands over to. */
  readonly inConsole: boolean;
}

/** Begins a state that comes back at another name than the console's, where it began. Nobody else can make one: the state is stored whole. */
const CONSOLE_STATE = 'console.';

/** Whether a state is of what began in a local console. */
export function isOfConsole(state: string): boolean {
  return state.startsWith(CONSOLE_STATE);
}

/** Whether an authorisation that began with this state can still end. */
export async function hasFlow(context: ServiceContext, state: string): Promise<boolean> {
  return (await findFlow(context.database, await sha256Base64Url(state), nowSeconds(context))) !== null;
}

/** Begins an authorisation in the browser: the link to open. */
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
  const url = linkOf(held.client, authorizationUrl, { redirectUri, state, challenge });
  return { grant: 'browser', authorization_url: url, redirect_uri: redirectUri, expires_at: expiresAt };
}

/** The link that a person opens (RFC 6749 section 4.1.1, RFC 7636 section 4.3); what the URL asks for itself stays. */
function linkOf(
  client: OAuthClient,
  authorizationUrl: string,
  { redirectUri, state, challenge }: { redirectUri: string; state: string; challenge: string },
): string {
  const url = new URL(authorizationUrl);
  const parameters = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirectUri,
    ...(client.scopes.length > 0 && { scope: client.scopes.join(' ') }),
    ...(client.resource !== undefined && { resource: client.resource }),
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

async function beginDevice(
  context: ServiceContext,
  caller: Caller,
  held: HeldCredential,
): Promise<Result<AuthorizeReply, ApiError>> {
  if (held.client.device_authorization_url === null) return err(noWay('device', 'device_authorization_url'));
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

/** What a provider's redirect brought. */
export interface Callback {
  readonly state: string;
  readonly code: string | null;
  /** The provider's word for why there is no code. */
  readonly error: string | null;
  /** The provider's own name, when it sends it (RFC 9207). */
  readonly issuer: string | null;
}

/** Whom an authorisation was for. */
export interface FinishedFor {
  /** `con_…` or `mcp_…` */
  readonly id: string;
  readonly name: string;
}

/** Why an authorisation came to nothing. */
export interface NotFinished {
  readonly message: string;
  /** Who it was for; null if the caller may not see it or it has expired. */
  readonly id: string | null;
}

/** How an authorisation ended, for the person in front of the browser. */
export type Finished = Result<FinishedFor, NotFinished>;

/**
 * Ends an authorisation with what the browser brought back. The state is used up by it, whatever comes of it. `browser`: who
 * is signed in there; a hosted control plane and a console take tokens for nobody else, so that no link makes a person give
 * theirs away, and nobody who saw the callback's URL ends it.
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
  const name = await redeemed(context, flow, callback);
  return name.ok ? ok({ id: flow.connectorId, name: name.value }) : err({ message: name.error, id: flow.connectorId });
}

/** Exchanges the code of a flow that was taken; whose credential it now is, by name. Refuses with a sentence. */
async function redeemed(
  context: ServiceContext,
  flow: OAuthFlowRow,
  callback: Callback,
): Promise<Result<string, string>> {
  const resumed = await resumeFlow(context, flow);
  if (!resumed.ok) return resumed;
  const { held, secret: verifier } = resumed.value;
  if (!isFromProvider(held.client, callback.issuer)) return err(OTHER_PROVIDER);
  if (callback.code === null) return err(`the provider refused: ${wordOf(callback.error)}`);
  const redirectUri = flow.redirectUri ?? '';
  const granted = await codeGrant(granteeOf(context, held), { code: callback.code, redirectUri, verifier });
  if (!granted.ok) return err(granted.error.message);
  const by = { happening: 'stored' as const, actor: flow.userId, more: [] };
  const isStored = await storeTokens(context, { ...held, bundle: withoutTokens(held) }, granted.value, by);
  return isStored ? ok(held.subject.name) : err('the credential was replaced meanwhile: begin again');
}

/** A new authorisation leaves nothing of the one before: its refresh token was for another grant. */
function withoutTokens({ bundle }: HeldCredential): HeldCredential['bundle'] {
  return { ...bundle, accessToken: null, refreshToken: null };
}

/** A code that another provider sent must not be given to this one (RFC 9207 section 2.4). */
function isFromProvider(client: OAuthClient, issuer: string | null): boolean {
  const { authorization_url: authorizationUrl } = client;
  if (issuer === null) return client.names_itself !== true;
  if (client.issuer !== undefined) return issuer === client.issuer;
  if (authorizationUrl === null || !URL.canParse(issuer)) return false;
  return new URL(issuer).origin === new URL(authorizationUrl).origin;
}

export function granteeOf(context: ServiceContext, { client, bundle }: HeldCredential): Grantee {
  return { outbound: context.outbound, client, clientSecret: bundle.clientSecret };
}

function wordOf(error: string | null): string {
  return (error ?? '').replaceAll(/[^\w.-]/g, '').slice(0, 64) || 'it sent no code';
}

const OVER = 'this authorisation was used already, or its ten minutes are over: begin again';
const OTHER_PERSON = 'sign in as the user who began this authorisation, and open the link again';
const OTHER_PROVIDER = 'another provider answered than the one that was asked: nothing was stored';

function noOAuth(): ApiError {
  return apiError('invalid_input', 'this connector takes an API key: there is nothing to authorise');
}

function noWay(grant: string, field: string): ApiError {
  const message = `is "${grant}", but the client has no ${field}: store it with PUT .../credential`;
  return apiError('invalid_input', `grant ${message}`, { fields: [{ field: 'grant', message }] });
}
