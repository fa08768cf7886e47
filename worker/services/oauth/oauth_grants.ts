import {
  allowInsecureRequests,
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  None,
  processDeviceAuthorizationResponse,
  processGenericTokenEndpointResponse,
  refreshTokenGrantRequest,
  ResponseBodyError,
  validateAuthResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { OAuthClient } from './oauth_client.ts';
import { NoReply, oauthFetch } from './oauth_fetch.ts';
import type { Outbound } from '../../kernel/outbound.ts';

/** What a provider gave. */
export interface Tokens {
  readonly accessToken: Secret;
  /** Null: the one before stays good (RFC 6749 section 6). */
  readonly refreshToken: Secret | null;
  /** Seconds; null when the provider does not say. */
  readonly expiresIn: number | null;
}

/** Why there are no tokens. `revoked`: the grant is no good any more. `pending` and `slow_down` are of a device. */
export interface GrantError {
  readonly reason: 'revoked' | 'pending' | 'slow_down' | 'failed';
  /** Never a token, a code or a secret. */
  readonly message: string;
}

/** Who asks: the client, its secret, and the way out. */
export interface Grantee {
  readonly outbound: Outbound;
  readonly client: OAuthClient;
  readonly clientSecret: Secret | null;
}

type Granted = Promise<Result<Tokens, GrantError>>;

/** The grant with a refresh token (RFC 6749 section 6). */
export function refreshGrant(grantee: Grantee, refreshToken: Secret): Granted {
  return tokensOf(grantee, (server, client, auth, options) =>
    refreshTokenGrantRequest(server, client, auth, refreshToken.reveal(), options),
  );
}

/** The grant with the code of a callback, proven by PKCE (RFC 7636). */
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

/** The grant of a device that a person authorises elsewhere (RFC 8628 section 3.4). */
export function deviceGrant(grantee: Grantee, deviceCode: Secret): Granted {
  return tokensOf(grantee, (server, client, auth, options) =>
    deviceCodeGrantRequest(server, client, auth, deviceCode.reveal(), options),
  );
}

/** What a person needs to authorise a device (RFC 8628 section 3.2). */
export interface DeviceAuthorisation {
  readonly deviceCode: Secret;
  readonly userCode: string;
  readonly verificationUri: string;
  readonly verificationUriComplete: string | null;
  readonly expiresIn: number;
  readonly intervalSeconds: number;
}

const DEFAULT_INTERVAL_SECONDS = 5;

export async function authoriseDevice(grantee: Grantee): Promise<Result<DeviceAuthorisation, GrantError>> {
  const { server, client, auth, options } = partsOf(grantee);
  const { scopes } = grantee.client;
  const parameters = new URLSearchParams(scopes.length === 0 ? {} : { scope: scopes.join(' ') });
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

/** A token that its provider made for something else: it would let whoever gets it act there. */
class ForeignToken extends Error {}

/**
 * False for a token that says it is for another resource than the one that was asked for (RFC 8707, RFC 9068 section 2.2):
 * the provider took no notice of that, and the server would be given a key to somebody else's. A token that cannot be read,
 * or whose audience names no host, says nothing.
 */
function isForResource(token: string, resource: string | undefined): boolean {
  if (resource === undefined) return true;
  const hosts = audiencesOf(token).flatMap((text) =>
    /^https?:/i.test(text) && URL.canParse(text) ? [new URL(text).host] : [],
  );
  return hosts.length === 0 || hosts.includes(new URL(resource).host);
}

const audience = z.object({ aud: z.union([z.string(), z.array(z.string())]) });

/** What a JWT says that it is for; nothing for any other token. Its signature is the server's to check. */
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
    // What is no JWT says nothing of whom it is for.
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
): Granted {
  const { server, client, auth, options } = partsOf(grantee);
  return attempt(grantee.client, async () => {
    const reply = await request(server, client, auth, options);
    const tokens = await processGenericTokenEndpointResponse(server, client, reply);
    if (!isForResource(tokens.access_token, grantee.client.resource)) throw new ForeignToken();
    return {
      accessToken: new Secret(tokens.access_token),
      refreshToken: tokens.refresh_token === undefined ? null : new Secret(tokens.refresh_token),
      expiresIn: tokens.expires_in ?? null,
    };
  });
}

/** The issuer's name is not known, and nothing that is checked by it is asked for. */
function partsOf({ outbound, client, clientSecret }: Grantee) {
  const server: AuthorizationServer = {
    issuer: new URL(client.token_url).origin,
    token_endpoint: client.token_url,
    ...(client.device_authorization_url !== null && { device_authorization_endpoint: client.device_authorization_url }),
  };
  // The outbound port says which plain URLs may be called.
  const options = {
    [customFetch]: oauthFetch(outbound),
    [allowInsecureRequests]: true,
    ...(client.resource !== undefined && { additionalParameters: { resource: client.resource } }),
  };
  return { server, client: { client_id: client.client_id }, auth: authenticationOf(client, clientSecret), options };
}

function authenticationOf({ client_authentication: way }: OAuthClient, secret: Secret | null): ClientAuth {
  if (secret === null) return None();
  return way === 'basic' ? ClientSecretBasic(secret.reveal()) : ClientSecretPost(secret.reveal());
}

/** Codes by which providers say that a refresh token or a code is no good any more; the first is the standard's. */
const REVOKED = new Set([
  'invalid_grant',
  'bad_refresh_token',
  'invalid_refresh_token',
  'token_revoked',
  'access_denied',
  'expired_token',
]);
const WAITING: Readonly<Record<string, 'pending' | 'slow_down'>> = {
  authorization_pending: 'pending',
  slow_down: 'slow_down',
};

async function attempt<T>(client: OAuthClient, work: () => Promise<T>): Promise<Result<T, GrantError>> {
  try {
    return ok(await work());
  } catch (error) {
    return err(grantError(new URL(client.token_url).hostname, error));
  }
}

/** Whatever the library has against a reply, there are no tokens; texts of the provider are not passed on. */
function grantError(host: string, error: unknown): GrantError {
  if (error instanceof NoReply) return { reason: 'failed', message: error.outbound.message };
  if (!(error instanceof Error)) throw error;
  if (error instanceof ForeignToken) {
    return { reason: 'failed', message: `${host} gave a token for another server, which was thrown away` };
  }
  if (!(error instanceof ResponseBodyError)) {
    return { reason: 'failed', message: `${host} answered with what is no token reply` };
  }
  const code = error.error.replaceAll(/[^\w.-]/g, '').slice(0, 64);
  const message = `${host} refused: ${code}`;
  if (REVOKED.has(code)) return { reason: 'revoked', message };
  return { reason: WAITING[code] ?? 'failed', message };
}
