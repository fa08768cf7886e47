import { ok, type Result } from '../../../../shared/model/result.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import type { SourceOf } from '../../../../shared/wire/sources/source_table.ts';
import { clientCredentialsGrant } from '../../oauth/oauth_grants.ts';
import { signAssertion } from '../sign_jwt.ts';
import type { MintingSource, MintFailure, Minting } from '../source_port.ts';
import { clientOf, keyProblem, mintedOf, revokeAccessToken, scopesAt } from '../token_source.ts';

/** An access token of a client itself (RFC 6749 section 4.4). */
export const CLIENT_CREDENTIALS: MintingSource<'client_credentials'> = {
  describe: ({ scopes, token_url: url, client_id: client }) => scopesAt(scopes, url, ` for the client ${client}`),
  plan: ({ client_id: client, scopes: scope, audience = null, resource = audience, token_url: url }) => ({
    identity: `the client ${client}`,
    scope,
    audience: resource,
    providerUrl: url,
  }),
  async checkKey({ client_authentication: way, algorithm }, key) {
    return way === 'private_key_jwt' ? keyProblem(key, algorithm) : 'unchecked';
  },
  async mint(minting) {
    const { source, outbound, nowMs } = minting;
    const proof = await proofOf(minting);
    if (!proof.ok) return proof;
    const { scopes, resource, audience } = source;
    const client = { ...clientNamed(source), scopes, ...(resource !== undefined && { resource }) };
    return mintedOf(await clientCredentialsGrant({ outbound, client, ...proof.value }, audience), nowMs);
  },
  async revoke(revoking) {
    const { source, outbound, minted } = revoking;
    const proof = await proofOf(revoking);
    if (!proof.ok) return proof;
    return revokeAccessToken(source, { outbound, client: clientNamed(source), ...proof.value }, minted.value);
  },
};

function clientNamed({ client_id, token_url: url, client_authentication: way }: SourceOf<'client_credentials'>) {
  return clientOf(url, { client_id, ...(way !== 'private_key_jwt' && { client_authentication: way }) });
}

interface Proof {
  readonly clientSecret: Secret | null;
  readonly clientAssertion?: Secret;
}

/** The client's secret, or an assertion that it signs (RFC 7523 section 3). */
async function proofOf({ source, key, nowMs }: Minting<'client_credentials'>): Promise<Result<Proof, MintFailure>> {
  if (source.client_authentication !== 'private_key_jwt') return ok({ clientSecret: key });
  const { client_id: client, assertion_audience: audience, token_url: url, algorithm } = source;
  const claims = { iss: client, sub: client, aud: audience ?? url };
  const named = { keyId: source.key_id, thumbprint: source.certificate_thumbprint };
  const signed = await signAssertion(key, { algorithm, ...named, claims }, nowMs);
  return signed.ok ? ok({ clientSecret: null, clientAssertion: signed.value }) : signed;
}
