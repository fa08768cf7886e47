import { z } from 'zod';
import { id, line, page, pageQuery, time } from '../primitives.ts';

/** Clients of a person's remote MCP server, as an OAuth authorization server knows them (decision 0079). */

/** The only scope: to use the person's remote MCP servers. */
export const MCP_SCOPE = 'mcp';
/** The beginning of a registered client's id; ids of the other kind are URLs. */
export const REGISTERED_PREFIX = 'svc_client_';
/** The path of the MCP server. Its URL is the audience of its tokens (RFC 8707). */
export const MCP_PATH = '/mcp';

/** Where a hosted control plane serves its metadata as a client of other authorization servers. */
export const MCP_CLIENT_DOCUMENT_PATH = '/oauth/client.json';

const MAX_NAME = 100;
const clientName = line(MAX_NAME).trim();
const redirectUris = z.array(z.string().max(2_000)).min(1).max(10);
const listed = z.array(z.string().max(200)).max(20).optional();

/** `POST /oauth/register` (RFC 7591). Other members are ignored. Every client is public. */
export const mcpClientRegistration = z
  .object({
    client_name: clientName.optional(),
    redirect_uris: redirectUris,
    grant_types: listed,
    response_types: listed,
    token_endpoint_auth_method: z.string().max(200).optional(),
    scope: z.string().max(1_000).optional(),
  })
  .meta({ id: 'McpClientRegistration' });
export type McpClientRegistration = z.infer<typeof mcpClientRegistration>;

/** 201. */
export const mcpClientRegistered = z
  .object({
    client_id: z.string(),
    client_id_issued_at: z.number().int(),
    client_name: z.string(),
    redirect_uris: redirectUris,
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal('none'),
    scope: z.string(),
  })
  .meta({ id: 'McpClientRegistered' });
export type McpClientRegistered = z.infer<typeof mcpClientRegistered>;

/** The document at the URL that is a client's id. Other members are ignored. */
export const mcpClientDocument = z.object({
  client_id: z.string(),
  client_name: clientName.optional(),
  redirect_uris: redirectUris,
  token_endpoint_auth_method: z.literal('none').default('none'),
});

const accessToken = {
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  /** The lifetime of the access token in seconds. */
  expires_in: z.number().int(),
  scope: z.literal(MCP_SCOPE),
};

/** 200 of `POST /oauth/token` (RFC 6749 section 5.1) for an assertion: whoever wants another token shows another one. */
export const mcpAccessToken = z.object(accessToken).meta({ id: 'McpAccessToken' });
export type McpAccessToken = z.infer<typeof mcpAccessToken>;

/** 200 of `POST /oauth/token` for a code or a refresh token. */
export const mcpTokens = z
  .object({
    ...accessToken,
    /** Single use; the reply to it contains the next one. */
    refresh_token: z.string(),
  })
  .meta({ id: 'McpTokens' });
export type McpTokens = z.infer<typeof mcpTokens>;

/** The error of an OAuth endpoint (RFC 6749 section 5.2, RFC 7591 section 3.2.2). */
const OAUTH_ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_scope',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_target',
  'invalid_redirect_uri',
  'invalid_client_metadata',
  'unsupported_response_type',
  'access_denied',
  'slow_down',
  'server_error',
] as const;
export const oauthErrorBody = z
  .object({ error: z.enum(OAUTH_ERRORS), error_description: z.string() })
  .meta({ id: 'OAuthError' });
export type OAuthErrorBody = z.infer<typeof oauthErrorBody>;

/** Who connected a client: the person, or the OpenID provider of the person's enterprise, which the enterprise allowed to. */
export const CONNECTED_BY = ['person', 'provider'] as const;

/** An MCP client of the caller. */
const mcpClientRecord = z
  .object({
    id: id('mcc'),
    /** The client's own name for itself; nobody has verified it. */
    name: z.string(),
    /** A URL whose host published the client's document, or an id that the client registered. */
    client_id: z.string(),
    /** Where the browser was sent back to; empty if the provider connected it. */
    redirect_origin: z.string(),
    connected_by: z.enum(CONNECTED_BY).default('person'),
    created_at: time,
    last_used_at: time,
    expires_at: time,
  })
  .meta({ id: 'McpClient' });
export type McpClientRecord = z.infer<typeof mcpClientRecord>;

export const mcpClientsQuery = z.strictObject({ ...pageQuery });
export const mcpClientsPage = page(mcpClientRecord).meta({ id: 'McpClientsPage' });
export const mcpClientParams = z.strictObject({ id: id('mcc') });
