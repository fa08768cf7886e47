import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { ServerMetadata } from './mcp_oauth_discovery.ts';
import { newClientKey } from '../oauth/client_key.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import { parseJsonBytes } from '../../../shared/model/json.ts';

/** A client that an authorization server registered. */
interface RegisteredClient {
  readonly clientId: string;
  readonly clientSecret: Secret | null;
  /** Null: it does not authenticate with a key. */
  readonly clientKey: Secret | null;
  readonly clientAuthentication: OAuthClient['client_authentication'];
}

const registration = z.object({
  client_id: z.string().min(1).max(2_000),
  client_secret: z.string().max(8_000).optional(),
  token_endpoint_auth_method: z.string().optional(),
});

/**
 * Registers a client for this redirect URL (RFC 7591), a public one if the server supports that. The error is a
 * sentence.
 */
export async function registerClient(
  outbound: Outbound,
  metadata: ServerMetadata & { readonly registration_endpoint: string },
  redirectUri: string,
): Promise<Result<RegisteredClient, string>> {
  const url = metadata.registration_endpoint;
  const { hostname } = new URL(url);
  const authentication = authenticationAt(metadata);
  const key =
    authentication === 'private_key_jwt'
      ? await newClientKey(metadata.token_endpoint_auth_signing_alg_values_supported)
      : null;
  const asked = {
    ...metadataOf(redirectUri, authentication),
    ...(key !== null && { jwks: { keys: [key.jwk] }, token_endpoint_auth_signing_alg: key.jwk.alg }),
  };
  const called = await outbound.call({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(asked)),
  });
  if (!called.ok) return err(called.error.message);
  const { status, body } = called.value;
  const made = status === 201 || status === 200 ? registration.safeParse(parseJsonBytes(body)) : null;
  if (made?.success !== true) return err(`${hostname} did not register this client (status ${status})`);
  const { client_id: clientId, client_secret: secret, token_endpoint_auth_method: way = authentication } = made.data;
  const clientKey = way === 'private_key_jwt' ? (key?.pem ?? null) : null;
  if (clientKey !== null)
    return ok({ clientId, clientSecret: null, clientKey, clientAuthentication: 'private_key_jwt' });
  return ok({
    clientId,
    clientKey,
    clientSecret: secret === undefined || secret === '' || way === 'none' ? null : new Secret(secret),
    clientAuthentication: way === 'client_secret_post' ? 'post' : 'basic',
  });
}

/** The document that a hosted control plane is known by (OAuth Client ID Metadata Document): a public client. */
export function clientDocument(url: string, redirectUri: string): object {
  return { client_id: url, ...metadataOf(redirectUri, 'none') };
}

/** Our client metadata (RFC 7591 section 2, OpenID Connect Dynamic Client Registration section 2). */
function metadataOf(redirectUri: string, authentication: string): object {
  return {
    client_name: 'svc',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: authentication,
    // The redirect URL of a web client must not be on loopback.
    application_type: redirectUri.startsWith('http:') ? 'native' : 'web',
  };
}

const METHODS = ['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'];

/** The preferred method of those that the server supports; the default is `client_secret_basic`. */
function authenticationAt({ token_endpoint_auth_methods_supported: known }: ServerMetadata): string {
  return METHODS.find((way) => known?.includes(way)) ?? 'client_secret_basic';
}
