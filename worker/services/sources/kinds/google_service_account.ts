import { ok } from '../../../../shared/model/result.ts';
import { jwtBearerGrant } from '../../oauth/oauth_grants.ts';
import { signJwt } from '../sign_jwt.ts';
import type { MintingSource } from '../source_port.ts';
import { clientOf, keyProblem, mintedOf, scopesAt } from '../token_source.ts';

/** The longest life that Google accepts, of an assertion and of a JWT in place of a token. */
const LIFE_SECONDS = 3600;

/** An access token of a Google service account, or a JWT for one API that it signs itself, without a call. */
export const GOOGLE_SERVICE_ACCOUNT: MintingSource<'google_service_account'> = {
  describe({ scopes, audience, client_email: account, subject, token_url: url }) {
    const who = ` for ${account}${subject === undefined ? '' : ` acting for ${subject}`}`;
    return audience === undefined ? scopesAt(scopes, url, who) : `${audience}${who}`;
  },
  plan: ({ client_email: account, subject, scopes: scope, audience, token_url: url }) => ({
    identity: subject === undefined ? account : `${subject}, by ${account}`,
    scope,
    audience: audience ?? null,
    providerUrl: audience === undefined ? url : null,
    lifeSeconds: LIFE_SECONDS,
  }),
  checkKey: (_source, key) => keyProblem(key, 'RS256'),
  async mint({ source, key, outbound, nowMs }) {
    const { client_email: iss, subject, audience, token_url: url, scopes, key_id: keyId } = source;
    const iat = Math.floor(nowMs / 1000);
    const exp = iat + LIFE_SECONDS;
    const own = { iss, sub: subject ?? iss, aud: audience, iat, exp };
    const asked = { iss, aud: url, scope: scopes.join(' '), iat, exp, ...(subject !== undefined && { sub: subject }) };
    const claims = audience === undefined ? asked : own;
    const signed = await signJwt(key, { algorithm: 'RS256', keyId, claims });
    if (!signed.ok) return signed;
    if (audience !== undefined) return ok({ value: signed.value, expiresAtMs: exp * 1000 });
    return mintedOf(await jwtBearerGrant({ outbound, client: clientOf(url, {}) }, signed.value), nowMs);
  },
};
