import { ok, type Result } from '../../../../shared/model/result.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import type { SourceOf } from '../../../../shared/wire/secret_sources.ts';
import { clientCredentialsGrant } from '../../oauth/oauth_grants.ts';
import { signJwt } from '../sign_jwt.ts';
import type { MintingSource, MintFailure, Minting } from '../source_port.ts';
import { ASSERTION_SECONDS, clientOf, keyProblem, mintedOf, scopesAt, tokenPlan } from '../token_source.ts';

type Source = SourceOf<'client_credentials'>;

/** An access token of a client itself (RFC 6749 section 4.4). */
export const CLIENT_CREDENTIALS: MintingSource<'client_credentials'> = {
  describe: ({ scopes, token_url: url, client_id: client }) => scopesAt(scopes, url, ` for the client ${client}`),
  plan: ({ client_id: client, scopes: scope, audience = null, resource = audience, token_url: url }) =>
    tokenPlan(`the client ${client}`, { scope, audience: resource, providerUrl: url }),
  async checkKey({ client_authentication: way, algorithm }, key) {
    return way === 'private_key_jwt' ? keyProblem(key, algorithm) : null;
  },
  async mint(minting) {
    const { source, outbound, nowMs } = minting;
    const proof = await proofOf(minting);
    if (!proof.ok) return proof;
    const { client_id, scopes, resource, token_url: url, audience, client_authentication: way } = source;
    const authentication = way === 'private_key_jwt' ? {} : { client_authentication: way };
    const client = clientOf(url, { client_id, scopes, ...authentication, ...(resource !== undefined && { resource }) });
    return mintedOf(await clientCredentialsGrant({ outbound, client, ...proof.value }, audience), nowMs);
  },
};

interface Proof {
  readonly clientSecret: Secret | null;
  readonly clientAssertion?: Secret;
}

/** The client's secret, or an assertion that it signs (RFC 7523 section 3). */
async function proofOf({ source, key, nowMs }: Minting<'client_credentials'>): Promise<Result<Proof, MintFailure>> {
  if (source.client_authentication !== 'private_key_jwt') return ok({ clientSecret: key });
  const signed = await signJwt(key, {
    algorithm: source.algorithm,
    keyId: source.key_id,
    thumbprint: source.certificate_thumbprint,
    claims: claimsOf(source, nowMs),
  });
  return signed.ok ? ok({ clientSecret: null, clientAssertion: signed.value }) : signed;
}

function claimsOf({ client_id: client, assertion_audience: audience, token_url: url }: Source, nowMs: number) {
  const iat = Math.floor(nowMs / 1000);
  return {
    iss: client,
    sub: client,
    aud: audience ?? url,
    jti: crypto.randomUUID(),
    iat,
    exp: iat + ASSERTION_SECONDS,
  };
}
