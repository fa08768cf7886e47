import { jwtBearerGrant } from '../../oauth/oauth_grants.ts';
import { signAssertion } from '../sign_jwt.ts';
import type { MintingSource } from '../source_port.ts';
import { authenticateClient, checkKeyParts, namedClient, readKeyParts, revokeGranted } from '../grant_client.ts';
import { clientOf, mintedOf, scopesAt } from '../token_source.ts';

/** An access token for a JWT that the source signs (RFC 7523 section 2.1). */
export const JWT_BEARER: MintingSource<'jwt_bearer'> = {
  describe: ({ scopes, token_url: url, subject }) => scopesAt(scopes, url, ` for ${subject}`),
  plan: ({ subject, issuer, scopes: scope, token_url: url }) => ({
    identity: `${subject}, by an assertion of ${issuer}`,
    scope,
    audience: null,
    providerUrl: url,
  }),
  checkKey: checkKeyParts,
  async mint({ source, key, outbound, nowMs }) {
    const { issuer: iss, subject: sub, audience, token_url: url, scopes, algorithm, key_id: keyId } = source;
    const parts = readKeyParts(source, key);
    if (!parts.ok) return parts;
    const claims = { iss, sub, aud: audience ?? url };
    const signed = await signAssertion(parts.value.private_key ?? key, { algorithm, keyId, claims }, nowMs);
    if (!signed.ok) return signed;
    const proof = await authenticateClient(source, parts.value, nowMs);
    if (!proof.ok) return proof;
    const client = clientOf(url, { scopes, ...namedClient(source) });
    return mintedOf(await jwtBearerGrant({ outbound, client, ...proof.value }, signed.value), nowMs);
  },
  revoke: revokeGranted,
};
