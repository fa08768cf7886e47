import { ok, type Result } from '../../../../shared/model/result.ts';
import { GOOGLE_TOKEN_SECONDS } from '../../../../shared/wire/sources/kinds/google_service_account.ts';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import { jwtBearerGrant } from '../../oauth/oauth_grants.ts';
import { generateAccessToken, impersonationUrl } from '../google_impersonation.ts';
import { signJwt } from '../sign_jwt.ts';
import type { Minted, MintFailure, Minting, MintingSource } from '../source_port.ts';
import { clientOf, keyProblem, mintedOf, scopesAt } from '../token_source.ts';

type Source = SourceOf<'google_service_account'>;

/** What the IAM Credentials API wants of the account that impersonates another one. */
const IAM_SCOPE = 'https://www.googleapis.com/auth/iam';

/**
 * An access token of a Google service account or of another one that it impersonates, or a JWT for one API that it signs itself, without
 * a call.
 */
export const GOOGLE_SERVICE_ACCOUNT: MintingSource<'google_service_account'> = {
  describe(source) {
    const { scopes, audience, token_url: url } = source;
    const who = ` for ${identityOf(source)}`;
    return audience === undefined ? scopesAt(scopes, impersonationUrl(source) ?? url, who) : `${audience}${who}`;
  },
  plan: (source) => ({
    identity: plannedIdentity(source),
    scope: source.scopes,
    audience: source.audience ?? null,
    providerUrl: source.audience === undefined ? (impersonationUrl(source) ?? source.token_url) : null,
  }),
  checkKey: (_source, key) => keyProblem(key, 'RS256'),
  async mint(minting) {
    const { source } = minting;
    if (source.impersonate === undefined) return mintOwn(minting, source.scopes);
    const own = await mintOwn(minting, [IAM_SCOPE]);
    return own.ok ? generateAccessToken(minting, own.value.value) : own;
  },
};

async function mintOwn(
  { source, key, outbound, nowMs }: Minting<'google_service_account'>,
  scopes: readonly string[],
): Promise<Result<Minted, MintFailure>> {
  const { client_email: iss, subject, audience, token_url: url, key_id: keyId } = source;
  const iat = Math.floor(nowMs / 1000);
  const exp = iat + GOOGLE_TOKEN_SECONDS;
  const own = { iss, sub: subject ?? iss, aud: audience, iat, exp };
  const asked = { iss, aud: url, scope: scopes.join(' '), iat, exp, ...(subject !== undefined && { sub: subject }) };
  const claims = audience === undefined ? asked : own;
  const signed = await signJwt(key, { algorithm: 'RS256', keyId, claims });
  if (!signed.ok) return signed;
  if (audience !== undefined) return ok({ value: signed.value, expiresAtMs: exp * 1000 });
  return mintedOf(await jwtBearerGrant({ outbound, client: clientOf(url, {}) }, signed.value), nowMs);
}

function identityOf({ client_email: account, subject, impersonate }: Source): string {
  if (impersonate !== undefined) return `${impersonate}, impersonated by ${account}`;
  return subject === undefined ? account : `${account} acting for ${subject}`;
}

function plannedIdentity(source: Source): string {
  const { client_email: account, subject } = source;
  return subject === undefined ? identityOf(source) : `${subject}, by ${account}`;
}
