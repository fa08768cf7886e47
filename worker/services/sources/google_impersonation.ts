import { z } from 'zod';
import { ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { GOOGLE_TOKEN_SECONDS } from '../../../shared/wire/sources/kinds/google_service_account.ts';
import type { SourceOf } from '../../../shared/wire/sources/source_table.ts';
import { type Advice, callManager, failed, notAnAnswer, withoutSlash } from './kept_value.ts';
import type { Minted, MintFailure, Minting } from './source_port.ts';

type Source = SourceOf<'google_service_account'>;

const IAM_CREDENTIALS = 'https://iamcredentials.googleapis.com';

const answer = z.object({
  accessToken: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expireTime: z.string().refine((text) => !Number.isNaN(Date.parse(text))),
});
const refusal = z.object({ error: z.object({ status: z.string() }) });

/** Where the token of the impersonated account is asked for; null if the source impersonates none. */
export function impersonationUrl({ impersonate, iam_credentials_url: url = IAM_CREDENTIALS }: Source): string | null {
  if (impersonate === undefined) return null;
  return `${withoutSlash(url)}/v1/projects/-/serviceAccounts/${encodeURIComponent(impersonate)}:generateAccessToken`;
}

/**
 * An access token of the account that the source impersonates, by `generateAccessToken` of the IAM Credentials API (v1). `own`: the token
 * of the account that asks. It ends as Google says, and no later than was asked for, because the two clocks may differ.
 */
export async function generateAccessToken(
  { source, outbound, nowMs }: Pick<Minting<'google_service_account'>, 'source' | 'outbound' | 'nowMs'>,
  own: Secret,
): Promise<Result<Minted, MintFailure>> {
  const url = impersonationUrl(source);
  if (url === null) return failed('the source impersonates no account');
  const { delegates, scopes: scope, duration_seconds: seconds = GOOGLE_TOKEN_SECONDS } = source;
  const json = {
    ...(delegates !== undefined && { delegates: delegates.map((email) => `projects/-/serviceAccounts/${email}`) }),
    scope,
    lifetime: `${seconds}s`,
  };
  const headers = { authorization: `Bearer ${own.reveal()}` };
  const called = await callManager({ outbound, url, headers, json, why: WHY, codeOf });
  if (!called.ok) return called;
  const { data } = answer.safeParse(called.value);
  if (data === undefined) return notAnAnswer(url);
  const expiresAtMs = Math.min(Date.parse(data.expireTime), nowMs + seconds * 1000);
  return ok({ value: new Secret(data.accessToken), expiresAtMs });
}

function codeOf(reply: unknown): string | null {
  return refusal.safeParse(reply).data?.error.status ?? null;
}

const WHY: Advice = {
  PERMISSION_DENIED:
    'give the account roles/iam.serviceAccountTokenCreator on the impersonated one (of delegates, each on the next), and enable the IAM Service Account Credentials API',
  NOT_FOUND: 'there is no such account: compare impersonate and delegates',
  INVALID_ARGUMENT:
    'it does not accept scopes, delegates or duration_seconds: more than 3600 seconds needs the policy iam.allowServiceAccountCredentialLifetimeExtension',
  UNAUTHENTICATED: 'it does not accept the token of the account: compare token_url, and the clock of the control plane',
  FAILED_PRECONDITION: 'the impersonated account is disabled: enable it',
  RESOURCE_EXHAUSTED: 'a quota is used up: try again later',
  UNAVAILABLE: 'try again',
  INTERNAL: 'try again',
};
