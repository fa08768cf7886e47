import { z } from 'zod';
import { line, time } from '../primitives.ts';
import { secretValue } from '../secrets.ts';

const scope = z.string().regex(/^[!#-[\]-~]{1,200}$/, 'is not a scope: printable ASCII without spaces and quotes');

/**
 * `POST /v1/mcp-servers/{id}/authorize`: starts the OAuth 2.0 authorisation of a remote server. Without a client in the body
 * the stored one is used, or one is registered if the authorization server supports that.
 */
export const mcpAuthorizationInput = z
  .strictObject({
    client_id: line(2_000).min(1).optional(),
    /** Absent: a public client, which authenticates with PKCE alone. For `private_key_jwt`, the private key in PEM. */
    client_secret: secretValue.optional(),
    client_authentication: z.enum(['post', 'basic', 'private_key_jwt']).default('post'),
    /** The sign-in hosts that the person agreed to, if they differ from the server's own. */
    authorization_hosts: z.array(z.string().min(1).max(260)).max(20).optional(),
    /** In place of the scopes that the server asks for. */
    scopes: z.array(scope).max(100).optional(),
    /** In addition to those of the last sign-in, or to those that the server asks for. */
    add_scopes: z.array(scope).max(100).optional(),
  })
  .superRefine((input, context) => {
    if (input.client_secret === undefined || input.client_id !== undefined) return;
    const message = 'belongs to a client: give its client_id too';
    context.addIssue({ code: 'custom', path: ['client_secret'], message });
  })
  .meta({ id: 'McpAuthorizationInput' });
export type McpAuthorizationInput = z.input<typeof mcpAuthorizationInput>;
export type ValidMcpAuthorization = z.output<typeof mcpAuthorizationInput>;

/** A link to open in a browser until `expires_at`; after that the server's `authorization` is `ready`. */
export const mcpAuthorizeReply = z
  .object({
    authorization_url: z.string(),
    /** The redirect URL to register with the authorization server, if the client was created by hand. */
    redirect_uri: z.string(),
    /** The authorization server, by its own name. */
    authorization_server: z.string(),
    expires_at: time,
  })
  .meta({ id: 'McpAuthorization' });
export type McpAuthorizeReply = z.infer<typeof mcpAuthorizeReply>;
