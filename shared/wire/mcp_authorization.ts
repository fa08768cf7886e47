import { z } from 'zod';
import { line, time } from './primitives.ts';
import { secretValue } from './secrets.ts';

const scope = z.string().regex(/^[!#-[\]-~]{1,200}$/, 'is no scope: printable ASCII without spaces and quotes');

/**
 * `POST /v1/mcp-servers/{id}/authorize`: begins the OAuth 2.0 authorisation of a remote server. Without a client the one that
 * is stored is used, or one is registered where the authorization server offers that.
 */
export const mcpAuthorizationInput = z
  .strictObject({
    client_id: line(2_000).min(1).optional(),
    /** Absent: a public client, which proves itself by PKCE alone. */
    client_secret: secretValue.optional(),
    client_authentication: z.enum(['post', 'basic']).default('post'),
    /** The hosts that the person agreed to sign in with, where they are others than the server's own. */
    authorization_hosts: z.array(z.string().min(1).max(260)).max(20).optional(),
    /** In place of what the server asks for. */
    scopes: z.array(scope).max(100).optional(),
  })
  .superRefine((input, context) => {
    if (input.client_secret === undefined || input.client_id !== undefined) return;
    const message = 'belongs to a client: give its client_id too';
    context.addIssue({ code: 'custom', path: ['client_secret'], message });
  })
  .meta({ id: 'McpAuthorizationInput' });
export type McpAuthorizationInput = z.input<typeof mcpAuthorizationInput>;
export type ValidMcpAuthorization = z.output<typeof mcpAuthorizationInput>;

/** A link to open in a browser until `expires_at`; the server's `authorization` then says `ready`. */
export const mcpAuthorizeReply = z
  .object({
    authorization_url: z.string(),
    /** To be registered with the authorization server, where the client was made by hand. */
    redirect_uri: z.string(),
    /** Who is signed in to, as it names itself. */
    authorization_server: z.string(),
    expires_at: time,
  })
  .meta({ id: 'McpAuthorization' });
export type McpAuthorizeReply = z.infer<typeof mcpAuthorizeReply>;
