import { jwtBearerGrant } from '../../oauth/oauth_grants.ts';
import { signAssertion } from '../sign_jwt.ts';
import type { MintingSource } from '../source_port.ts';
import { clientOf, keyProblem, mintedOf, scopesAt, tokenPlan } from '../token_source.ts';

/** An access token for a JWT that the source signs (RFC 7523 section 2.1). */
export const JWT_BEARER: MintingSource<'jwt_bearer'> = {
  describe: ({ scopes, token_url: url, subject }) => scopesAt(scopes, url, ` for ${subject}`),
  plan: ({ subject, issuer, scopes: scope, token_url: url }) =>
    tokenPlan(`${subject}, by an assertion of ${issuer}`, { scope, audience: null, providerUrl: url }),
  checkKey: async ({ algorithm }, key) => keyProblem(key, algorithm),
  async mint({ source, key, outbound, nowMs }) {
    const { issuer: iss, subject: sub, audience, token_url: url, scopes, algorithm, key_id: keyId } = source;
    const claims = { iss, sub, aud: audience ?? url };
    const signed = await signAssertion(key, { algorithm, keyId, claims }, nowMs);
    if (!signed.ok) return signed;
    return mintedOf(await jwtBearerGrant({ outbound, client: clientOf(url, { scopes }) }, signed.value), nowMs);
  },
};
