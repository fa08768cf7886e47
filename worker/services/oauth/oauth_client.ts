import type { ConnectorSpec } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ValidOAuth2Credential } from '../../../shared/wire/connector_credentials.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorCredentialRow } from '../../store/connectors.ts';
import { targetProblem } from '../../kernel/outbound.ts';

/** The part of an oauth2 credential that is not secret: the client and its endpoints. */
export interface OAuthClient {
  readonly client_id: string;
  /** How the client authenticates (RFC 6749 section 2.3.1); a client without a secret sends only its id. */
  readonly client_authentication: 'basic' | 'post';
  readonly authorization_url: string | null;
  readonly token_url: string;
  /** `json`: the body of a token request is JSON, as the program whose login this is writes it. */
  readonly token_request?: 'json';
  readonly device_authorization_url: string | null;
  readonly scopes: readonly string[];
  /** The resource of the tokens (RFC 8707), for an MCP server. */
  readonly resource?: string;
  /** The provider's issuer name, if known: then no other issuer may answer (RFC 9207). */
  readonly issuer?: string;
  /** The provider declares that it always sends its issuer name. */
  readonly names_itself?: boolean;
  /** The redirect URL that the client was registered for. */
  readonly registered_for?: string;
}

/** The client of a stored credential; null for an API key. */
export function findStoredClient(row: Pick<ConnectorCredentialRow, 'client'>): OAuthClient | null {
  if (row.client === null) return null;
  const client: OAuthClient = JSON.parse(row.client);
  return client;
}

/**
 * The client of an input, with the spec's URLs and scopes as defaults. They are not changed when another version of the
 * spec is installed, so a refresh token is only sent to the endpoint that issued it. Refuses with `invalid_input`.
 */
export function clientOf(
  input: ValidOAuth2Credential,
  { credential }: ConnectorSpec,
  isLocal: boolean,
): Result<OAuthClient, ApiError> {
  const login = credential.login ?? null;
  if (login !== null && input.client_id !== login.clientId) return fieldError('client_id', `must be ${login.clientId}`);
  if (login !== null && input.token_url !== undefined && input.token_url !== credential.tokenUrl) {
    return fieldError('token_url', 'must be that of the spec: its tokens belong to a program that has no other');
  }
  const tokenUrl = input.token_url ?? credential.tokenUrl;
  if (tokenUrl === undefined) return fieldError('token_url', 'is missing, and the spec has no default');
  const authorizationUrl = input.authorization_url ?? credential.authorizationUrl ?? null;
  const deviceUrl = input.device_authorization_url ?? credential.deviceAuthorizationUrl ?? null;
  const hasTokens = input.access_token !== undefined || input.refresh_token !== undefined;
  if (authorizationUrl === null && deviceUrl === null && !hasTokens) {
    return fieldError('authorization_url', 'is missing: the spec has no default, and no token was given');
  }
  const urls = { authorization_url: authorizationUrl, token_url: tokenUrl, device_authorization_url: deviceUrl };
  for (const [field, url] of Object.entries(urls)) {
    const problem = url === null ? null : targetProblem(new URL(url), isLocal);
    if (problem !== null) return fieldError(field, `cannot be used: ${problem.message}`);
  }
  const { client_id, client_authentication } = input;
  const scopes = input.scopes ?? credential.scopes;
  const body = login?.tokenRequest === 'json' ? { token_request: 'json' as const } : {};
  return ok({ client_id, client_authentication, ...urls, scopes, ...body });
}

function fieldError(field: string, message: string): Result<never, ApiError> {
  return err(apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] }));
}
