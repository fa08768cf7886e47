import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { Failure } from '../../../shared/model/failure.ts';
import type { GrantFailureReason, Tokens } from '../oauth/oauth_grants.ts';
import type { OAuthClient } from '../oauth/oauth_client.ts';
import { importPrivateKey, type SigningAlgorithm } from './sign_jwt.ts';
import { type Minted, type MintFailure, UNTOLD_SECONDS } from './source_port.ts';

/** The life of an assertion, which is used at once: some providers accept no more than this. */
export const ASSERTION_SECONDS = 300;

/** Turns the reply of a token endpoint into a value. Its end counts from before the request, so that it is never too late. */
export function mintedOf(
  granted: Result<Tokens, Failure<GrantFailureReason>>,
  askedAtMs: number,
): Result<Minted, MintFailure> {
  if (!granted.ok) return err({ reason: 'failed', message: granted.error.message });
  const { accessToken, expiresIn } = granted.value;
  return ok({ value: accessToken, expiresAtMs: askedAtMs + (expiresIn ?? UNTOLD_SECONDS) * 1000 });
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
