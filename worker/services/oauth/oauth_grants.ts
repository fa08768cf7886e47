import {
  allowInsecureRequests,
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  clientCredentialsGrantRequest,
  ClientSecretPost,
  customFetch,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  genericTokenEndpointRequest,
  None,
  processDeviceAuthorizationResponse,
  processGenericTokenEndpointResponse,
  refreshTokenGrantRequest,
  ResponseBodyError,
  revocationRequest,
  validateAuthResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import { parseJson } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { keyAuthentication } from './client_key.ts';
import type { OAuthClient } from './oauth_client.ts';
import { NoReply, oauthFetch } from './oauth_fetch.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import type { Failure } from '../../../shared/model/failure.ts';

/** The tokens of a reply. */
export interface Tokens {
  readonly accessToken: Secret;
  /** Null: the previous refresh token stays valid (RFC 6749 section 6). */
  readonly refreshToken: Secret | null;
  /** Seconds; null if the provider does not say. */
  readonly expiresIn: number | null;
  /** Of an exchange (RFC 8693 section 2.2.1). */
  readonly issuedTokenType?: string;
  /** What the provider says that the token is for, if it does (RFC 6749 section 5.1). */
  readonly scopes?: readonly string[];
}

/**
 * Why there are no tokens. `revoked`: the grant is no longer valid. `pending` and `slow_down` occur in device
 * authorisations. The message never contains a token, a code or a secret.
 */
export type GrantFailureReason = 'revoked' | 'pending' | 'slow_down' | 'failed';

export interface GrantFailure extends Failure<GrantFailureReason> {
  /** By which the provider refused (RFC 6749 section 5.2). */
  readonly code?: string;
}

/** The client, its secret, and the outbound port. */
export interface Grantee {
  readonly outbound: Outbound;
  readonly client: OAuthClient;
  readonly clientSecret: Secret | null;
  /** A JWT that authenticates the client (RFC 7523 section 2.2). Null: the grant itself says who asks, so that no client is named. */
  readonly clientAssertion?: Secret | null;
  /** The private key of a client that signs such a JWT for each request. */
  readonly clientKey?: Secret | null;
}

type Granted = Promise<Result<Tokens, GrantFailure>>;

/** Requests tokens with a refresh token (RFC 6749 section 6). */
export function refreshGrant(grantee: Grantee, refreshToken: Secret): Granted {
  return tokensOf(grantee, (server, client, auth, options) =>
    refreshTokenGrantRequest(server, client, auth, refreshToken.reveal(), options),
  );
}

/** Requests tokens with the code of a callback and PKCE (RFC 7636). */
export function codeGrant(
  grantee: Grantee,
  callback: { readonly code: string; readonly redirectUri: string; readonly verifier: Secret },
): Granted {
  return tokensOf(grantee, (server, client, auth, options) => {
    const parameters = validateAuthResponse(server, client, new URLSearchParams({ code: callback.code }));
    const verifier = callback.verifier.reveal();
    return authorizationCodeGrantRequest(server, client, auth, parameters, callback.redirectUri, verifier, options);
  });
}

/** Requests tokens with a device code (RFC 8628 section 3.4). */
export function deviceGrant(grantee: Grantee, deviceCode: Secret): Granted {
  return tokensOf(grantee, (server, client, auth, options) =>
    deviceCodeGrantRequest(server, client, auth, deviceCode.reveal(), options),
  );
}

/** Requests a token for the client itself (RFC 6749 section 4.4). */
export function clientCredentialsGrant(grantee: Grantee, audience?: string): Granted {
  const parameters = targetOf(grantee.client, audience);
  return tokensOf(grantee, (server, client, auth, options) =>
    clientCredentialsGrantRequest(server, client, auth, parameters, options),
  );
}

/** Requests a token for a signed JWT (RFC 7523 section 2.1). */
export function jwtBearerGrant(
  asked: Pick<Grantee, 'outbound' | 'client'> & Partial<Pick<Grantee, 'clientSecret' | 'clientAssertion'>>,
  assertion: Secret,
): Granted {
  const { clientSecret } = asked;
  const grantee =
    clientSecret === undefined ? { ...asked, clientSecret: null, clientAssertion: null } : { ...asked, clientSecret };
  const parameters = { ...scopeOf(grantee.client), assertion: assertion.reveal() };
  const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  return tokensOf(grantee, (server, client, auth, options) =>
    genericTokenEndpointRequest(server, client, auth, grant, parameters, options),
  );
}

/** What a token is exchanged for (RFC 8693 section 2.1). */
interface Exchange {
  readonly subjectToken: Secret;
  readonly subjectTokenType: string;
  readonly requestedTokenType?: string | undefined;
  /** Of who acts for the subject. */
  readonly actor?: { readonly actorToken: Secret; readonly actorTokenType: string };
  readonly audience?: string | undefined;
}

/** The type of a token that is not an access token, such as an id token (RFC 8693 section 2.2.1). */
const NOT_AN_ACCESS_TOKEN = { n_a: () => undefined };

/** Exchanges a token for another. */
export function tokenExchangeGrant(grantee: Grantee, exchange: Exchange): Granted {
  const { subjectToken, subjectTokenType, requestedTokenType, actor } = exchange;
  const parameters = {
    ...targetOf(grantee.client, exchange.audience),
    subject_token: subjectToken.reveal(),
    subject_token_type: subjectTokenType,
    ...(requestedTokenType !== undefined && { requested_token_type: requestedTokenType }),
    ...(actor && { actor_token: actor.actorToken.reveal(), actor_token_type: actor.actorTokenType }),
  };
  const grant = 'urn:ietf:params:oauth:grant-type:token-exchange';
  return tokensOf(
    grantee,
    (server, client, auth, options) => genericTokenEndpointRequest(server, client, auth, grant, parameters, options),
    NOT_AN_ACCESS_TOKEN,
  );
}

/** What a token is for: its scope, and the audience and resource that some providers need. */
function targetOf(client: OAuthClient, audience: string | undefined): Record<string, string> {
  const { resource } = client;
  const named = { ...(audience !== undefined && { audience }), ...(resource !== undefined && { resource }) };
  return { ...scopeOf(client), ...named };
}

function scopeOf({ scopes }: OAuthClient): Record<string, string> {
  return scopes.length === 0 ? {} : { scope: scopes.join(' ') };
}

/** Requests a device code, with what a person needs to approve it (RFC 8628 section 3.2). */
interface DeviceAuthorisation {
  readonly deviceCode: Secret;
  readonly userCode: string;
  readonly verificationUri: string;
  readonly verificationUriComplete: string | null;
  readonly expiresIn: number;
  readonly intervalSeconds: number;
}

const DEFAULT_INTERVAL_SECONDS = 5;

export async function authoriseDevice(
  grantee: Grantee,
): Promise<Result<DeviceAuthorisation, Failure<GrantFailureReason>>> {
  const { server, client, auth, options } = partsOf(grantee);
  const parameters = new URLSearchParams(scopeOf(grantee.client));
  return attempt(grantee.client, async () => {
    const reply = await deviceAuthorizationRequest(server, client, auth, parameters, options);
    const device = await processDeviceAuthorizationResponse(server, client, reply);
    return {
      deviceCode: new Secret(device.device_code),
      userCode: device.user_code,
      verificationUri: device.verification_uri,
      verificationUriComplete: device.verification_uri_complete ?? null,
      expiresIn: device.expires_in,
      intervalSeconds: device.interval ?? DEFAULT_INTERVAL_SECONDS,
    };
  });
}

/** Asks the provider to revoke a token (RFC 7009 section 2). With a refresh token, most providers end its access tokens too. */
export async function revokeToken(
  grantee: Grantee,
  revocationUrl: string,
  { token, hint }: { readonly token: Secret; readonly hint: 'refresh_token' | 'access_token' },
): Promise<Result<void, Failure<GrantFailureReason>>> {
  const { server, client, auth, options } = partsOf(grantee);
  const at = { ...server, revocation_endpoint: revocationUrl };
  const revoking = { ...options, additionalParameters: { token_type_hint: hint } };
  const { hostname } = new URL(revocationUrl);
  try {
    const reply = await revocationRequest(at, client, auth, token.reveal(), revoking);
    const { ok: isDone, status } = reply;
    if (isDone || (await saysItHasEnded(reply))) return ok(undefined);
    return err({ reason: 'failed', message: `${hostname} did not revoke them (status ${status})` });
  } catch (error) {
    return err(grantFailure(hostname, error));
  }
}

const refusal = z.object({ error: z.string() });

/** RFC 7009 section 2.2 wants 200 for a token that is not valid, but some providers refuse it with 400 and a code. */
async function saysItHasEnded(reply: Response): Promise<boolean> {
  if (reply.status !== 400) return false;
  const { data } = refusal.safeParse(parseJson(await reply.text()));
  return data !== undefined && (data.error === 'invalid_token' || (REVOKED.has(data.error) && data.error !== DENIED));
}

/** A token for another resource: whoever receives it could use it there. */
class ForeignToken extends Error {}

/**
 * False if the token names another resource as its audience than the requested one (RFC 8707, RFC 9068 section 2.2).
 * Then the provider ignored the parameter, and the server would receive a token for somebody else's service. True if
 * the token cannot be read or its audience names no host.
 */
function isForResource(token: string, resource: string | undefined): boolean {
  if (resource === undefined) return true;
  const hosts = audiencesOf(token).flatMap((text) =>
    /^https?:/i.test(text) && URL.canParse(text) ? [new URL(text).host] : [],
  );
  return hosts.length === 0 || hosts.includes(new URL(resource).host);
}

const audience = z.object({ aud: z.union([z.string(), z.array(z.string())]) });

/** The audience of a JWT; empty for other tokens. The server verifies the signature. */
function audiencesOf(token: string): readonly string[] {
  const [, payload, ...rest] = token.split('.');
  if (payload === undefined || rest.length !== 1) return [];
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (letter) =>
      letter.charCodeAt(0),
    );
    const { data } = audience.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
    return data === undefined ? [] : [data.aud].flat();
  } catch {
    // Not a JWT: it has no audience.
    return [];
  }
}

type Parts = ReturnType<typeof partsOf>;

function tokensOf(
  grantee: Grantee,
  request: (
    server: AuthorizationServer,
    client: Client,
    auth: ClientAuth,
    options: Parts['options'],
  ) => Promise<Response>,
  recognizedTokenTypes: Readonly<Record<string, () => undefined>> = {},
): Granted {
  const { server, client, auth, options } = partsOf(grantee);
  return attempt(grantee.client, async () => {
    const reply = await request(server, client, auth, options);
    const tokens = await processGenericTokenEndpointResponse(server, client, reply, { recognizedTokenTypes });
    const { issued_token_type: issuedTokenType } = tokens;
    if (!isForResource(tokens.access_token, grantee.client.resource)) throw new ForeignToken();
    return {
      accessToken: new Secret(tokens.access_token),
      refreshToken: tokens.refresh_token === undefined ? null : new Secret(tokens.refresh_token),
      expiresIn: tokens.expires_in ?? null,
      ...(typeof issuedTokenType === 'string' && { issuedTokenType }),
      ...(tokens.scope !== undefined && { scopes: tokens.scope.split(' ').filter((each) => each !== '') }),
    };
  });
}

/** The library needs an issuer. The real one is unknown, and nothing that is checked against it is requested. */
function partsOf({ outbound, client, clientSecret, clientAssertion, clientKey = null }: Grantee) {
  const server: AuthorizationServer = {
    issuer: new URL(client.token_url).origin,
    token_endpoint: client.token_url,
    ...(client.device_authorization_url !== null && { device_authorization_endpoint: client.device_authorization_url }),
  };
  // The outbound port decides which http URLs may be called.
  const options = {
    [customFetch]: oauthFetch(outbound, client.token_request),
    [allowInsecureRequests]: true,
    ...(client.resource !== undefined && { additionalParameters: { resource: client.resource } }),
  };
  const auth =
    clientAssertion === undefined
      ? authenticationOf(client, clientSecret, clientKey)
      : assertionAuthentication(clientAssertion);
  return { server, client: { client_id: client.client_id }, auth, options };
}

/** Not by the library: it addresses the assertion to an issuer, which is unknown here. */
function assertionAuthentication(assertion: Secret | null): ClientAuth {
  if (assertion === null) return () => undefined;
  return (_server, { client_id: id }, body) => {
    body.set('client_id', id);
    body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    body.set('client_assertion', assertion.reveal());
  };
}

function authenticationOf(client: OAuthClient, secret: Secret | null, key: Secret | null): ClientAuth {
  const { client_authentication: way } = client;
  if (way === 'private_key_jwt' && key !== null) return keyAuthentication(client, key);
  if (secret === null) return None();
  return way === 'basic' ? basicAuthentication(secret.reveal()) : ClientSecretPost(secret.reveal());
}

/**
 * RFC 6749 section 2.3.1. The library also encodes `-`, `_` and `.`, which the form encoding leaves as they are, and which servers
 * that do not decode then compare.
 */
function basicAuthentication(secret: string): ClientAuth {
  return (_server, { client_id: id }, _body, headers) =>
    headers.set('authorization', `Basic ${btoa(`${formEncode(id)}:${formEncode(secret)}`)}`);
}

function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/** A person said no, which says nothing about a token. */
const DENIED = 'access_denied';
/**
 * Error codes by which providers say that a refresh token or code is no longer valid; the first is the standard one.
 */
const REVOKED = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'invalid_refresh_token',
  'token_revoked',
  'refresh_token_expired',
  'refresh_token_reused',
  'refresh_token_invalidated',
  DENIED,
  'expired_token',
]);
const WAITING: Readonly<Record<string, 'pending' | 'slow_down'>> = {
  authorization_pending: 'pending',
  slow_down: 'slow_down',
};

async function attempt<T>(client: OAuthClient, work: () => Promise<T>): Promise<Result<T, GrantFailure>> {
  try {
    return ok(await work());
  } catch (error) {
    return err(grantFailure(new URL(client.token_url).hostname, error));
  }
}

/** Any error of the library means no tokens. Texts of the provider are not passed on. */
function grantFailure(host: string, error: unknown): GrantFailure {
  if (error instanceof NoReply) return { reason: 'failed', message: error.outbound.message };
  if (!(error instanceof Error)) throw error;
  if (error instanceof ForeignToken) {
    return { reason: 'failed', message: `${host} issued a token for another server, which was discarded` };
  }
  if (!(error instanceof ResponseBodyError)) {
    return { reason: 'failed', message: `the answer of ${host} is not a token reply` };
  }
  const code = error.error.replaceAll(/[^\w.-]/g, '').slice(0, 64);
  const message = `${host} refused: ${code}`;
  if (REVOKED.has(code)) return { reason: 'revoked', message, code };
  return { reason: WAITING[code] ?? 'failed', message, code };
}
