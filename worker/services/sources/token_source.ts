import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { UNTOLD_SECONDS } from '../../../shared/wire/sources/source_descriptor.ts';
import { type Grantee, type GrantFailure, revokeToken, type Tokens } from '../oauth/oauth_grants.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import { importPrivateKey, type SigningAlgorithm } from './sign_jwt.ts';
import type { Minted, MintFailure } from './source_port.ts';

/** Turns the reply of a token endpoint into a value. Its end counts from before the request, so that it is never too late. */
export function mintedOf(granted: Result<Tokens, GrantFailure>, askedAtMs: number): Result<Minted, MintFailure> {
  if (!granted.ok) return err({ reason: 'failed', message: withAdvice(granted.error) });
  const { accessToken, expiresIn, scopes } = granted.value;
  const expiresAtMs = askedAtMs + (expiresIn ?? UNTOLD_SECONDS) * 1000;
  return ok({ value: accessToken, expiresAtMs, ...(scopes && { grantedScopes: scopes }) });
}

/** What a source says about where its tokens are revoked. */
type Revocable = { readonly revocation_url?: string | undefined };

/** Has the authorization server revoke an access token (RFC 7009). Its client authenticates as it does for a token. */
export async function revokeAccessToken(
  { revocation_url: url }: Revocable,
  grantee: Grantee,
  token: Secret,
): Promise<Result<void, MintFailure>> {
  if (url === undefined) return err({ reason: 'failed', message: 'the source names no revocation_url' });
  const revoked = await revokeToken(grantee, url, { token, hint: 'access_token' });
  return revoked.ok ? revoked : err({ reason: 'failed', message: revoked.error.message });
}

const ADVICE: Readonly<Record<string, string>> = {
  invalid_client:
    'it does not accept the client: compare client_id and client_authentication with the provider, and give the source again with its present key',
  invalid_grant:
    'it does not accept the assertion or the token: compare issuer, subject, audience and key_id with the provider, and the clock of the control plane',
  unauthorized_client: 'it does not let this client ask for tokens in this way: allow the grant at the provider',
  unsupported_grant_type: 'its token_url does not offer this grant: check token_url and the kind of the source',
  invalid_scope: 'a scope is unknown there, or this client may not have it: change scopes, or allow it at the provider',
  invalid_target: 'it does not know the audience or the resource: change them, or register it at the provider',
  access_denied: 'the identity may not have this token: allow it at the provider',
  invalid_request: 'it misses a field or does not accept one: compare the fields of the source with its reference',
};

/** A refusal by its code (RFC 6749 section 5.2, RFC 8693 section 2.2.2), with what to do. */
function withAdvice({ message, code = '' }: GrantFailure): string {
  return ADVICE[code] === undefined ? message : `${message} (${ADVICE[code]})`;
}

/** The client of a grant without a person. */
export function clientOf(
  tokenUrl: string,
  client: Partial<Pick<OAuthClient, 'client_id' | 'client_authentication' | 'scopes' | 'resource'>>,
): OAuthClient {
  return {
    client_id: 'none',
    client_authentication: 'post',
    scopes: [],
    ...client,
    token_url: tokenUrl,
    authorization_url: null,
    device_authorization_url: null,
  };
}

export async function keyProblem(key: Secret, algorithm: SigningAlgorithm): Promise<MintFailure | null> {
  const imported = await importPrivateKey(key, algorithm);
  return imported.ok ? null : imported.error;
}

/** `the scopes a b at host`. */
export function scopesAt(scopes: readonly string[], url: string, more = ''): string {
  const what = scopes.length === 0 ? 'no scope' : `the scope ${scopes.join(' ')}`;
  return `${what} at ${new URL(url).host}${more}`;
}
