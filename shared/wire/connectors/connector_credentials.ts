import { z } from 'zod';
import { credentialRefText } from '../host_binding_fields.ts';
import { httpsServerText, httpsUrlText } from './connector_spec_fields.ts';
import { contentHash, line, time } from '../primitives.ts';
import { secretValue } from '../secrets.ts';

const loopbackUrl = z
  .string()
  .regex(/^http:\/\/(?:127\.0\.0\.1|localhost)(?::\d{1,5})?(?:\/[!-~]*)?$/)
  .max(2_000);

/** https on port 443; a local control plane also accepts plain http on loopback, for a provider on this machine. */
export const providerUrl = z.union([httpsUrlText, loopbackUrl], {
  error: 'must be an https URL on port 443, such as https://auth.example.com/token',
});

/** The same at any port, for a server that people run themselves. */
export const serverUrl = z.union([httpsServerText, loopbackUrl], {
  error: 'must be an https URL, such as https://vault.example.com:8200',
});

const scope = z.string().regex(/^[!#-[\]-~]{1,200}$/, 'is not a scope: printable ASCII without spaces and quotes');

/** Either the key itself, or a stored secret of the connector's owner, which then serves it too. */
const apiKeyInput = z
  .strictObject({
    kind: z.literal('api_key'),
    value: secretValue.optional(),
    credential_ref: credentialRefText.optional(),
  })
  .refine(({ value, credential_ref: reference }) => (value === undefined) !== (reference === undefined), {
    error: 'is given once: as value, or as credential_ref',
    path: ['value'],
  });

/**
 * An oauth2 client, and where it is authorised; URLs and scopes default to the spec's. Existing tokens can be stored with
 * it; without them the credential waits to be authorised.
 */
const oauth2Input = z.strictObject({
  kind: z.literal('oauth2'),
  client_id: line(500).min(1),
  /** Absent: a public client, which authenticates with PKCE alone. */
  client_secret: secretValue.optional(),
  /** How the secret is sent: most providers accept it in the body, some only in an Authorization header. */
  client_authentication: z.enum(['post', 'basic']).default('post'),
  authorization_url: providerUrl.optional(),
  token_url: providerUrl.optional(),
  device_authorization_url: providerUrl.optional(),
  /** Where the tokens are revoked (RFC 7009), on the server of the token URL. */
  revocation_url: providerUrl.optional(),
  scopes: z.array(scope).max(100).optional(),
  access_token: secretValue.optional(),
  refresh_token: secretValue.optional(),
  /** For the access token; absent: it is refreshed before its first use if there is a refresh token. */
  expires_at: time.optional(),
  /** Stored only if the connector still has the spec with this hash; otherwise `conflict`. */
  content_hash: contentHash.optional(),
});
export type OAuth2CredentialInput = z.input<typeof oauth2Input>;
export type ValidOAuth2Credential = z.output<typeof oauth2Input>;

/** `PUT /v1/connectors/{id}/credential`: stores it in place of the earlier one. No reply contains a value. */
export const connectorCredentialInput = z
  .discriminatedUnion('kind', [apiKeyInput, oauth2Input], {
    error: 'must be {"kind": "api_key", "value": ...}, the same with a credential_ref, or of kind "oauth2"',
  })
  .meta({ id: 'ConnectorCredentialInput' });
export type ValidConnectorCredential = z.output<typeof connectorCredentialInput>;

/**
 * `POST /v1/connectors/{id}/credential/authorize`: starts an authorisation. Without `grant`: in the browser if the client
 * has an authorisation URL, else by a device code.
 */
export const authorizeInput = z
  .strictObject({ grant: z.enum(['browser', 'device']).optional() })
  .meta({ id: 'ConnectorAuthorisationInput' });

/**
 * A link to open, or a code to type. Either expires at `expires_at`; then the connector's credential is `ready` or has its
 * earlier status. A device code is redeemed while somebody views the connector.
 */
export const authorizeReply = z
  .discriminatedUnion('grant', [
    z.object({
      grant: z.literal('browser'),
      authorization_url: z.string(),
      /** The redirect URL to register with the provider. */
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
