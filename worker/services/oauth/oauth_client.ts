import type { ConnectorSpec } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ValidOAuth2Credential } from '../../../shared/wire/connector_credentials.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorCredentialRow } from '../../store/connectors.ts';
import { targetProblem } from '../../kernel/outbound.ts';

/** What of an oauth2 credential is no secret: the client, and where it is authorised and refreshed. */
export interface OAuthClient {
  readonly client_id: string;
  /** How its secret is sent (RFC 6749 section 2.3.1); a client without one sends its id alone. */
  readonly client_authentication: 'basic' | 'post';
  readonly authorization_url: string | null;
  readonly token_url: string;
  readonly device_authorization_url: string | null;
  readonly scopes: readonly string[];
  /** What the tokens are for (RFC 8707); of an MCP server. */
  readonly resource?: string;
  /** The provider's own name, where it is known: no other one may answer (RFC 9207). */
  readonly issuer?: string;
  /** The provider says that it always names itself. */
  readonly names_itself?: boolean;
  /** Of a client that was registered for this redirect URL alone. */
  readonly registered_for?: string;
}

/** The client of a stored credential; null for an API key. */
export function storedClient(row: Pick<ConnectorCredentialRow, 'client'>): OAuthClient | null {
  if (row.client === null) return null;
  const client: OAuthClient = JSON.parse(row.client);
  return client;
}

/**
 * The client of an input, with the URLs and scopes of the spec where it names none. They stay as they are when another
 * version of the spec is installed: a refresh token goes nowhere else than where it was given. Refuses with `invalid_input`.
 */
export function clientOf(
  input: ValidOAuth2Credential,
  { credential }: ConnectorSpec,
  isLocal: boolean,
): Result<OAuthClient, ApiError> {
  const tokenUrl = input.token_url ?? credential.tokenUrl;
  if (tokenUrl === undefined) return fieldError('token_url', 'is missing: the spec names none either');
  const authorizationUrl = input.authorization_url ?? credential.authorizationUrl ?? null;
  const deviceUrl = input.device_authorization_url ?? credential.deviceAuthorizationUrl ?? null;
  const hasTokens = input.access_token !== undefined || input.refresh_token !== undefined;
  if (authorizationUrl === null && deviceUrl === null && !hasTokens) {
    return fieldError('authorization_url', 'is missing: the spec names none either, and no token was given');
  }
  const urls = { authorization_url: authorizationUrl, token_url: tokenUrl, device_authorization_url: deviceUrl };
  for (const [field, url] of Object.entries(urls)) {
    const problem = url === null ? null : targetProblem(new URL(url), isLocal);
    if (problem !== null) return fieldError(field, `cannot be used: ${problem.message}`);
  }
  const { client_id, client_authentication } = input;
  return ok({ client_id, client_authentication, ...urls, scopes: input.scopes ?? credential.scopes });
}

function fieldError(field: string, message: string): Result<never, ApiError> {
  return err(apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] }));
}
