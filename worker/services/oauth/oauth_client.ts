import type { ConnectorSpec } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ValidOAuth2Credential } from '../../../shared/wire/connectors/connector_credentials.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ConnectorCredentialRow } from '../../store/connectors.ts';
import { targetProblem } from '../../kernel/outbound.ts';

/** The part of an oauth2 credential that is not secret: the client and its endpoints. */
export interface OAuthClient {
  readonly client_id: string;
  /** How the client authenticates (RFC 6749 section 2.3.1, RFC 7523 section 2.2); a client without a secret sends only its id. */
  readonly client_authentication: 'basic' | 'post' | 'private_key_jwt';
  readonly authorization_url: string | null;
  readonly token_url: string;
  /** `json`: the body of a token request is JSON, as the program whose login this is writes it. */
  readonly token_request?: 'json';
  readonly device_authorization_url: string | null;
  /** Where its tokens are revoked (RFC 7009), on the origin of the token URL. Absent: the spec names none. */
  readonly revocation_url?: string;
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
  const revocation = revocationOf(input, tokenUrl, credential);
  if (!revocation.ok) return revocation;
  for (const [field, url] of Object.entries({ ...urls, ...revocation.value })) {
    const problem = url === null ? null : targetProblem(new URL(url), isLocal);
    if (problem !== null) return fieldError(field, `cannot be used: ${problem.message}`);
  }
  const { client_id, client_authentication } = input;
  const scopes = input.scopes ?? credential.scopes;
  const body = login?.tokenRequest === 'json' ? { token_request: 'json' as const } : {};
  return ok({ client_id, client_authentication, ...urls, ...revocation.value, scopes, ...body });
}

/** A token is sent to no other server than the one that issued it: the URL of the spec is for the server that the spec names. */
function revocationOf(
  { revocation_url: given }: ValidOAuth2Credential,
  tokenUrl: string,
  { revocationUrl, login }: ConnectorSpec['credential'],
): Result<Pick<OAuthClient, 'revocation_url'>, ApiError> {
  const isSame = (url: string): boolean => new URL(url).origin === new URL(tokenUrl).origin;
  if (given !== undefined && !isSame(given)) return fieldError('revocation_url', 'must be on the server of token_url');
  if (given !== undefined && login !== undefined && given !== revocationUrl) {
    return fieldError('revocation_url', 'must be that of the spec');
  }
  const url = given ?? revocationUrl;
  return ok(url !== undefined && isSame(url) ? { revocation_url: url } : {});
}

function fieldError(field: string, message: string): Result<never, ApiError> {
  return err(apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] }));
}
