import { z } from 'zod';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import type { ServerMetadata } from './mcp_oauth_discovery.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import type { Outbound } from '../../kernel/outbound.ts';
import { parseJsonBytes } from '../../../shared/model/json.ts';

/** A client that an authorization server registered. */
interface RegisteredClient {
  readonly clientId: string;
  readonly clientSecret: Secret | null;
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
  const called = await outbound.call({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(clientMetadata(metadata, redirectUri))),
  });
  if (!called.ok) return err(called.error.message);
  const { status, body } = called.value;
  const made = status === 201 || status === 200 ? registration.safeParse(parseJsonBytes(body)) : null;
  if (made?.success !== true) return err(`${hostname} did not register this client (status ${status})`);
  const { client_id: clientId, client_secret: secret, token_endpoint_auth_method: way } = made.data;
  return ok({
    clientId,
    clientSecret: secret === undefined || secret === '' || way === 'none' ? null : new Secret(secret),
    clientAuthentication: way === 'client_secret_post' ? 'post' : 'basic',
  });
}

function clientMetadata(metadata: ServerMetadata, redirectUri: string): object {
  return metadataOf(redirectUri, authenticationAt(metadata));
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

/** The preferred method of those that the server supports; the default is `client_secret_basic`. */
function authenticationAt({ token_endpoint_auth_methods_supported: known }: ServerMetadata): string {
  return (
    ['none', 'client_secret_post', 'client_secret_basic'].find((way) => known?.includes(way)) ?? 'client_secret_basic'
  );
}
