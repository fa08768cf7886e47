import { createLocalJWKSet, errors, type JWK, type JWTPayload, jwtVerify, type JWTVerifyOptions } from 'jose';

/** Signatures that only the holder of a private key can make. A shared secret would be the public key, which everybody has. */
export const PUBLIC_KEY_ALGORITHMS: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/**
 * The payload of a JWT that one of these keys signed. Without a key's id it may be signed by each key of its kind. Throws an
 * error of the library, or of the platform if a key cannot be used. The signature is verified before the claims are.
 */
export async function verifyByKeys(
  token: string,
  keys: readonly JWK[],
  expected: Omit<JWTVerifyOptions, 'algorithms'>,
): Promise<JWTPayload> {
  const options = { ...expected, algorithms: [...PUBLIC_KEY_ALGORITHMS] };
  try {
    return (await jwtVerify(token, createLocalJWKSet({ keys: keys.filter(isPublic) }), options)).payload;
  } catch (several) {
    if (!(several instanceof errors.JWKSMultipleMatchingKeys)) throw several;
    for await (const key of several) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function isPublic({ kty }: JWK): boolean {
  return kty === 'RSA' || kty === 'EC' || kty === 'OKP';
}
