import { err, ok, type Result } from '../../../../shared/model/result.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import { tokenExchangeGrant } from '../../oauth/oauth_grants.ts';
import { signAssertion } from '../sign_jwt.ts';
import type { MintingSource, MintFailure, Minting } from '../source_port.ts';
import {
  authenticateClient,
  checkKeyParts,
  type KeyParts,
  namedClient,
  readKeyParts,
  revokeGranted,
} from '../grant_client.ts';
import { clientOf, mintedOf, scopesAt } from '../token_source.ts';

const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';

/** A token in exchange for a JWT that the source signs, or for a token that it keeps (RFC 8693). */
export const TOKEN_EXCHANGE: MintingSource<'token_exchange'> = {
  describe: ({ scopes, token_url: url, subject, audience }) =>
    scopesAt(
      scopes,
      url,
      `${audience === undefined ? '' : ` of ${audience}`}${subject === undefined ? '' : ` for ${subject}`}`,
    ),
  plan({ subject, issuer, scopes: scope, audience = null, resource = audience, token_url: url }) {
    const identity =
      issuer === undefined ? 'whoever the stored token stands for' : `${subject}, by an assertion of ${issuer}`;
    return { identity, scope, audience: resource, providerUrl: url };
  },
  checkKey: checkKeyParts,
  async mint(minting) {
    const { source, outbound, nowMs } = minting;
    const { token_url: url, scopes, resource, audience, requested_token_type: wanted } = source;
    const parts = readKeyParts(source, minting.key);
    if (!parts.ok) return parts;
    const subject = await subjectTokenOf(minting, parts.value);
    if (!subject.ok) return subject;
    const proof = await authenticateClient(source, parts.value, nowMs);
    if (!proof.ok) return proof;
    const client = clientOf(url, { scopes, ...namedClient(source), ...(resource !== undefined && { resource }) });
    const { actor_token: actorToken } = parts.value;
    const { actor_token_type: actorTokenType } = source;
    const type = `${TOKEN_TYPE}${source.issuer === undefined ? 'access_token' : 'jwt'}`;
    const granted = await tokenExchangeGrant(
      { outbound, client, ...proof.value },
      {
        subjectToken: subject.value,
        subjectTokenType: source.subject_token_type ?? type,
        requestedTokenType: wanted,
        audience,
        ...(actorToken !== undefined && actorTokenType !== undefined && { actor: { actorToken, actorTokenType } }),
      },
    );
    const issued = granted.ok ? granted.value.issuedTokenType : undefined;
    if (wanted !== undefined && issued !== undefined && issued !== wanted) {
      const message = `${new URL(url).host} issued a token of another type than was asked for, which was discarded`;
      return err({ reason: 'failed', message });
    }
    return mintedOf(granted, nowMs);
  },
  revoke: revokeGranted,
};

async function subjectTokenOf(
  { source, nowMs }: Minting<'token_exchange'>,
  { token, private_key: signing }: KeyParts,
): Promise<Result<Secret, MintFailure>> {
  const { issuer: iss, subject: sub, assertion_audience: audience, token_url: url, algorithm, key_id: keyId } = source;
  if (token !== undefined) return ok(token);
  if (signing === undefined) return err({ reason: 'invalid_key', message: 'the source has no key that signs' });
  return signAssertion(signing, { algorithm, keyId, claims: { iss, sub, aud: audience ?? url } }, nowMs);
}
