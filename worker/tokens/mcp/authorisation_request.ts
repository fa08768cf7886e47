import { err, ok, type Result } from '../../../shared/model/result.ts';
import { isSameRedirect, redirectUriProblem } from '../../../shared/net/redirect_uri.ts';
import { MCP_PATH } from '../../../shared/wire/mcp/mcp_clients.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findMcpClient, type McpClient } from './mcp_client.ts';
import { oauthError, type OAuthRefusal } from './oauth_refusal.ts';

/** A valid request of a client for a code (RFC 6749 section 4.1.1, with PKCE and a resource). */
export interface AuthorisationRequest {
  readonly client: McpClient;
  readonly redirectUri: string;
  readonly state: string | null;
  /** The PKCE challenge, by S256. */
  readonly challenge: string;
}

/**
 * Why there is no code. Without a known client and a redirect URI of its own, the browser is sent nowhere, and the user
 * gets a sentence. Otherwise the client learns it.
 */
export type AuthorisationRefusal =
  | { readonly to: 'user'; readonly message: string }
  | { readonly to: 'client'; readonly redirectUri: string; readonly state: string | null; readonly why: OAuthRefusal };

/** The URL of the MCP server: the resource that tokens are for. */
export function mcpResource(publicUrl: string): string {
  return publicUrl + MCP_PATH;
}

/** Checks a request for a code, for a signed-in user. */
export async function readAuthorisationRequest(
  context: ServiceContext,
  userId: string,
  query: URLSearchParams,
): Promise<Result<AuthorisationRequest, AuthorisationRefusal>> {
  if (['client_id', 'redirect_uri', 'state'].some((name) => query.getAll(name).length > 1)) return toUser(REPEATED);
  const client = await findMcpClient(context, userId, query.get('client_id') ?? '');
  if (!client.ok) return toUser(client.error);
  const redirectUri = query.get('redirect_uri') ?? '';
  const isItsOwn = client.value.redirectUris.some((each) => isSameRedirect(each, redirectUri));
  if (!isItsOwn || redirectUriProblem(redirectUri) !== null) return toUser(FOREIGN_REDIRECT);
  const state = query.get('state');
  const why = requestProblem(query, mcpResource(context.publicUrl ?? ''));
  if (why !== null) return err({ to: 'client', redirectUri, state, why });
  return ok({ client: client.value, redirectUri, state, challenge: query.get('code_challenge') ?? '' });
}

function toUser(message: string): Result<never, AuthorisationRefusal> {
  return err({ to: 'user', message });
}

const REPEATED = 'The client repeated a parameter of its request.';
const FOREIGN_REDIRECT =
  'The client asked to be sent the answer at an address that it has not registered, so it gets none.';

const SINGLE = ['response_type', 'code_challenge', 'code_challenge_method', 'scope'];
/** 32 bytes in base64url (RFC 7636 section 4.2). */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** Other scopes than the one there is are left out, as RFC 6749 section 3.3 allows; the reply with tokens names it. */
function requestProblem(query: URLSearchParams, resource: string): OAuthRefusal | null {
  if (SINGLE.some((name) => query.getAll(name).length > 1)) return oauthError('invalid_request', 'repeated parameter');
  if (query.get('response_type') !== 'code') return oauthError('unsupported_response_type', 'use response_type=code');
  if (query.get('code_challenge_method') !== 'S256' || !CHALLENGE.test(query.get('code_challenge') ?? '')) {
    return oauthError('invalid_request', 'PKCE is required: send code_challenge with code_challenge_method=S256');
  }
  const isOther = query.getAll('resource').some((each) => !isResource(each, resource));
  return isOther ? oauthError('invalid_target', `the only resource here is ${resource}`) : null;
}

/** Whether a URL is this one, with or without a slash at its end: clients and providers write both. */
export function isResource(named: string, resource: string): boolean {
  return named === resource || named === `${resource}/`;
}
