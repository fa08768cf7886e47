import { z } from 'zod';
import { httpsUrlText } from './connector_spec_fields.ts';
import { line, time } from './primitives.ts';
import { secretValue } from './secrets.ts';

const LOOPBACK_URL = /^http:\/\/(?:127\.0\.0\.1|localhost)(?::\d{1,5})?(?:\/[!-~]*)?$/;

/** https on 443; a local control plane also takes plain http on loopback, for a provider on this machine. */
const providerUrl = z.union([httpsUrlText, z.string().regex(LOOPBACK_URL).max(2_000)], {
  error: 'must be an https URL on port 443, such as https://auth.example.com/token',
});

const scope = z.string().regex(/^[!#-[\]-~]{1,200}$/, 'is no scope: printable ASCII without spaces and quotes');

const apiKeyInput = z.strictObject({ kind: z.literal('api_key'), value: secretValue });

/**
 * An oauth2 client, and where it is authorised; a URL or scopes left out are those of the spec. Tokens that somebody has
 * already are stored with it; without them the credential waits to be authorised.
 */
const oauth2Input = z.strictObject({
  kind: z.literal('oauth2'),
  client_id: line(500).min(1),
  /** Absent: a public client, which proves itself by PKCE alone. */
  client_secret: secretValue.optional(),
  /** How the secret is sent: most providers take it in the body, some in an Authorization header alone. */
  client_authentication: z.enum(['post', 'basic']).default('post'),
  authorization_url: providerUrl.optional(),
  token_url: providerUrl.optional(),
  device_authorization_url: providerUrl.optional(),
  scopes: z.array(scope).max(100).optional(),
  access_token: secretValue.optional(),
  refresh_token: secretValue.optional(),
  /** Of the access token; absent: it is refreshed before its first use when there is a refresh token. */
  expires_at: time.optional(),
});
export type OAuth2CredentialInput = z.input<typeof oauth2Input>;
export type ValidOAuth2Credential = z.output<typeof oauth2Input>;

/** `PUT /v1/connectors/{id}/credential`: stores it, in place of the one before. No reply ever holds a value. */
export const connectorCredentialInput = z
  .discriminatedUnion('kind', [apiKeyInput, oauth2Input], {
    error: 'must be {"kind": "api_key", "value": ...} or of kind "oauth2"',
  })
  .meta({ id: 'ConnectorCredentialInput' });
export type ValidConnectorCredential = z.output<typeof connectorCredentialInput>;

/**
 * `POST /v1/connectors/{id}/credential/authorize`: begins an authorisation. Without `grant`: in the browser where the client
 * has an authorisation URL, else by a device code.
 */
export const authorizeInput = z
  .strictObject({ grant: z.enum(['browser', 'device']).optional() })
  .meta({ id: 'ConnectorAuthorisationInput' });

/**
 * A link to open, or a code to type. Either is over at `expires_at`; the connector's credential then says `ready` or what it
 * said before. A device's code is redeemed while somebody looks at the connector.
 */
export const authorizeReply = z
  .discriminatedUnion('grant', [
    z.object({
      grant: z.literal('browser'),
      authorization_url: z.string(),
      /** To be registered with the provider. */
      redirect_uri: z.string(),
      expires_at: time,
    }),
    z.object({
      grant: z.literal('device'),
      user_code: z.string(),
      verification_uri: z.string(),
      verification_uri_complete: z.string().nullable(),
      interval_seconds: z.number().int(),
      expires_at: time,
    }),
  ])
  .meta({ id: 'ConnectorAuthorisation' });
export type AuthorizeReply = z.infer<typeof authorizeReply>;
