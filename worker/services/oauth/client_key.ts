import { type CryptoKey, exportJWK, exportPKCS8, generateKeyPair, type JWK } from 'jose';
import { type ClientAuth, modifyAssertion, PrivateKeyJwt } from 'oauth4webapi';
import { Secret } from '../../../shared/model/secret.ts';
import { importPrivateKey } from '../sources/sign_jwt.ts';
import type { OAuthClient } from './oauth_client.ts';

/** Of assertions, in the order in which a new key is chosen. */
const ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const;
type Algorithm = (typeof ALGORITHMS)[number];

interface ClientKey {
  readonly key: CryptoKey;
  readonly algorithm: Algorithm;
}

/** The private key of a client, in PEM, and what it is for. Null if it is none, or of another kind. */
export async function readClientKey(pem: Secret): Promise<ClientKey | null> {
  for (const algorithm of ALGORITHMS) {
    const imported = await importPrivateKey(pem, algorithm);
    if (imported.ok) return { key: imported.value, algorithm };
  }
  return null;
}

/** A new private key in PEM, and the public one that a server registers. `known`: the algorithms of the server, if it names them. */
export async function newClientKey(
  known: readonly string[] = ALGORITHMS,
): Promise<{ readonly pem: Secret; readonly jwk: JWK }> {
  const alg = ALGORITHMS.find((each) => known.includes(each)) ?? ALGORITHMS[0];
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { pem: new Secret(await exportPKCS8(privateKey)), jwk: { ...(await exportJWK(publicKey)), alg, use: 'sig' } };
}

/** The client proves who it is with a signed assertion (RFC 7523 section 3), for the issuer of its tokens if that is known. */
export function keyAuthentication({ issuer, token_url: tokenUrl }: OAuthClient, pem: Secret): ClientAuth {
  return async (server, client, body, headers) => {
    const read = await readClientKey(pem);
    if (read === null)
      throw Object.assign(new Error('the key of a client is damaged'), { code: 'vault_entry_damaged' });
    const sign = PrivateKeyJwt(read.key, {
      [modifyAssertion](header, payload) {
        Object.assign(header, { alg: read.algorithm });
        Object.assign(payload, { aud: issuer ?? tokenUrl });
      },
    });
    await sign(server, client, body, headers);
  };
}
