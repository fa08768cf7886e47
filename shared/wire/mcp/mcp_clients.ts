import { z } from 'zod';
import { id, line, page, pageQuery, time } from '../primitives.ts';

/** Clients of a person's remote MCP server, as an OAuth authorization server knows them (decision 0079). */

/** The only scope: to use the person's remote MCP servers. */
export const MCP_SCOPE = 'mcp';
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

/** 200 of `POST /oauth/token` (RFC 6749 section 5.1). */
export const mcpTokens = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    /** The lifetime of the access token in seconds. */
    expires_in: z.number().int(),
    /** Single use; the reply to it contains the next one. */
    refresh_token: z.string(),
    scope: z.literal(MCP_SCOPE),
  })
  .meta({ id: 'McpTokens' });
export type McpTokens = z.infer<typeof mcpTokens>;

/** The error of an OAuth endpoint (RFC 6749 section 5.2, RFC 7591 section 3.2.2). */
const OAUTH_ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
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

/** An MCP client that the caller connected. */
const mcpClientRecord = z
  .object({
    id: id('mcc'),
    /** The client's own name for itself; nobody has verified it. */
    name: z.string(),
    /** A URL whose host published the client's document, or an id that the client registered. */
    client_id: z.string(),
    /** Where the browser was sent back to. */
    redirect_origin: z.string(),
    created_at: time,
    last_used_at: time,
    expires_at: time,
  })
  .meta({ id: 'McpClient' });
export type McpClientRecord = z.infer<typeof mcpClientRecord>;

export const mcpClientsQuery = z.strictObject({ ...pageQuery });
export const mcpClientsPage = page(mcpClientRecord).meta({ id: 'McpClientsPage' });
export const mcpClientParams = z.strictObject({ id: id('mcc') });
