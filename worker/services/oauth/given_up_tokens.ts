import { ok, type Result } from '../../../shared/model/result.ts';
import type { Failure } from '../../../shared/model/failure.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listCredentialsOf } from '../../store/connectors.ts';
import { granteeOf, type OAuthBundle } from './oauth_bundle.ts';
import { findStoredClient, type OAuthClient } from './oauth_client.ts';
import { type GrantFailureReason, revokeToken } from './oauth_grants.ts';

/** Tokens with the client that they were issued to. */
interface IssuedTokens {
  readonly client: OAuthClient;
  readonly bundle: OAuthBundle;
}

/** Tokens that svc deletes and nobody else is meant to have. */
export interface GivenUpTokens extends IssuedTokens {
  readonly enterpriseId: string;
  /** Whose credentials are looked at for another use of the client: many providers revoke for all of a client and person. */
  readonly ownerId?: string;
  /** What is recorded, by the provider's answer. */
  readonly events: { readonly revoked: AuditDraft; readonly notRevoked: AuditDraft };
}

/** The token that ends the most; null if there is none. */
export function revocableToken({ refreshToken, accessToken }: OAuthBundle): Secret | null {
  return refreshToken ?? accessToken;
}

/** Asks the provider to revoke the token that ends the most, at the URL that is stored with the client. */
export function requestRevocation(
  context: ServiceContext,
  issued: IssuedTokens,
  at: { readonly url: string; readonly token: Secret },
): Promise<Result<void, Failure<GrantFailureReason>>> {
  const hint = issued.bundle.refreshToken === null ? ('access_token' as const) : ('refresh_token' as const);
  return revokeToken(granteeOf(context, issued), at.url, { token: at.token, hint });
}

/**
 * Has deleted tokens revoked at their provider, if svc knows where (decision 0068), and records the answer. Not awaited: a
 * provider that does not answer must not delay the deletion. An orderly shutdown waits for it.
 */
export function revokeGivenUp(context: ServiceContext, given: GivenUpTokens): void {
  const { client, bundle, enterpriseId, events } = given;
  const url = client.revocation_url;
  const token = revocableToken(bundle);
  if (url === undefined || token === null) return;
  context.defer('a revocation', async () => {
    const isRevoked =
      !(await isClientInUse(context, given)) && (await requestRevocation(context, given, { url, token })).ok;
    const event = isRevoked ? events.revoked : events.notRevoked;
    const recorded = { statements: [], events: [event], value: null };
    await commit(context, controlChain({ enterpriseId }), async () => ok(recorded));
  });
}

/** The given-up tokens are no longer stored, so each credential found here is another one. */
async function isClientInUse(context: ServiceContext, { client, ownerId }: GivenUpTokens): Promise<boolean> {
  if (ownerId === undefined) return false;
  const others = (await listCredentialsOf(context.database, ownerId)).map(findStoredClient);
  return others.some((other) => other?.client_id === client.client_id && other.token_url === client.token_url);
}
