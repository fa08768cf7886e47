import { parseJson } from '../../../shared/model/json.ts';
import { fieldProblems } from '../../../shared/wire/errors.ts';
import { MCP_CLIENT_DOCUMENT_PATH, MCP_SCOPE, mcpClientRegistration } from '../../../shared/wire/mcp/mcp_clients.ts';
import { clientDocument } from '../../services/mcp/mcp_oauth_registration.ts';
import { CALLBACK_PATH } from '../../services/oauth/oauth_authorisation.ts';
import { mcpResource } from '../../tokens/mcp/authorisation_request.ts';
import { registerMcpClient } from '../../tokens/mcp/mcp_client.ts';
import { grantByAssertion } from '../../tokens/mcp/grant_by_assertion.ts';
import { redeemCode, refreshMcpTokens, revokeMcpToken } from '../../tokens/mcp/mcp_connections.ts';
import { oauthError, type OAuthRefusal } from '../../tokens/mcp/oauth_refusal.ts';
import type { AppContext } from '../http/app_env.ts';
import { whereServed } from './public_server.ts';

export const AUTHORIZE_PATH = '/oauth/authorize';
/** The grant of an assertion (RFC 7523), and the only kind of assertion that is taken: an ID-JAG. */
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ID_JAG_PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag';
const METADATA_PATH = '/.well-known/oauth-protected-resource';

/** The URL of the metadata of the MCP server, for the 401 of a call (RFC 9728 section 5.1). */
export function resourceMetadataUrl(publicUrl: string): string {
  return `${publicUrl}${METADATA_PATH}${new URL(mcpResource(publicUrl)).pathname}`;
}

/** `GET /.well-known/oauth-protected-resource[/mcp]` (RFC 9728). */
export const getResourceMetadata = whereServed((c, publicUrl) => {
  return c.json({
    resource: mcpResource(publicUrl),
    resource_name: 'svc: your MCP servers',
    authorization_servers: [publicUrl],
    scopes_supported: [MCP_SCOPE],
    bearer_methods_supported: ['header'],
  });
});

/** `GET /.well-known/oauth-authorization-server` (RFC 8414). */
export const getServerMetadata = whereServed((c, publicUrl) => {
  return c.json({
    issuer: publicUrl,
    authorization_endpoint: publicUrl + AUTHORIZE_PATH,
    token_endpoint: `${publicUrl}/oauth/token`,
    registration_endpoint: `${publicUrl}/oauth/register`,
    revocation_endpoint: `${publicUrl}/oauth/revoke`,
    jwks_uri: `${publicUrl}/.well-known/jwks.json`,
    scopes_supported: [MCP_SCOPE],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', JWT_BEARER],
    authorization_grant_profiles_supported: [ID_JAG_PROFILE],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  });
});

/** `GET /oauth/client.json`: this control plane as a client of other authorization servers. */
export const getClientDocument = whereServed((c, publicUrl) => {
  return c.json(clientDocument(publicUrl + MCP_CLIENT_DOCUMENT_PATH, publicUrl + CALLBACK_PATH));
});

/** `POST /oauth/register` (RFC 7591). */
export const postRegistration = whereServed(async (c) => {
  const registration = mcpClientRegistration.safeParse(parseJson(await c.req.text()));
  if (!registration.success) {
    const fields = fieldProblems(registration.error).map(({ field, message }) => `${field} ${message}`.trim());
    return refuse(c, oauthError('invalid_client_metadata', fields.join('; ')));
  }
  const registered = await registerMcpClient(c.get('context'), registration.data, c.get('clientAddress'));
  return registered.ok ? c.json(registered.value, 201) : refuse(c, registered.error);
});

/** `POST /oauth/token`. */
export const postToken = whereServed(async (c) => {
  const form = await readForm(c);
  if (form === null) return refuse(c, notAForm());
  const tokens = await exchange(c, form);
  return tokens.ok ? c.json(tokens.value) : refuse(c, tokens.error);
});

function exchange(
  c: AppContext,
  form: URLSearchParams,
): ReturnType<typeof redeemCode> | ReturnType<typeof grantByAssertion> {
  const context = c.get('context');
  const field = (name: string) => form.get(name) ?? '';
  const resource = form.getAll('resource');
  const clientId = field('client_id');
  switch (field('grant_type')) {
    case 'authorization_code': {
      const [code, redirectUri, verifier] = [field('code'), field('redirect_uri'), field('code_verifier')];
      return redeemCode(context, { code, clientId, redirectUri, verifier, resource });
    }
    case 'refresh_token':
      return refreshMcpTokens(context, { token: field('refresh_token'), clientId, resource });
    case JWT_BEARER: {
      const clientAddress = c.get('clientAddress');
      return grantByAssertion(context, {
        assertion: field('assertion'),
        // An empty parameter is one that is not there (RFC 6749 section 3.2).
        scope: field('scope') || null,
        clientId,
        resource,
        clientAddress,
      });
    }
    default:
      return Promise.resolve({ ok: false, error: oauthError('unsupported_grant_type', 'not a grant of this server') });
  }
}

/** `POST /oauth/revoke` (RFC 7009): 200 for any token, known or not. */
export const postRevocation = whereServed(async (c) => {
  const form = await readForm(c);
  if (form === null) return refuse(c, notAForm());
  await revokeMcpToken(c.get('context'), form.get('token') ?? '', form.get('client_id') ?? '');
  return c.body(null, 200);
});

/** Fields that may not be repeated (RFC 6749 section 3.2). */
const SINGLE = [
  'grant_type',
  'code',
  'redirect_uri',
  'code_verifier',
  'client_id',
  'refresh_token',
  'assertion',
  'scope',
  'token',
];

/** Null if it is not a form, or repeats a field. */
async function readForm(c: AppContext): Promise<URLSearchParams | null> {
  const type = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') return null;
  const form = new URLSearchParams(await c.req.text());
  return SINGLE.some((name) => form.getAll(name).length > 1) ? null : form;
}

function notAForm(): OAuthRefusal {
  return oauthError('invalid_request', 'send application/x-www-form-urlencoded, with each field once');
}

function refuse(c: AppContext, refusal: OAuthRefusal): Response {
  return c.json(refusal, refusal.error === 'slow_down' ? 429 : 400);
}
