import { CompactEncrypt, type CryptoKey, importJWK } from 'jose';
import type { ReceivingKey, SigningKey } from '../../../shared/wire/sidecars.ts';

/** Whether a signing key can verify signatures. */
export async function isUsableSigningKey(key: SigningKey): Promise<boolean> {
  return (await attempt(() => importSigningKey(key))) !== null;
}

/** Whether one can encrypt to a receiving key. A point of low order fails here rather than at the first credential. */
export async function isUsableReceivingKey(key: ReceivingKey): Promise<boolean> {
  return (await attempt(async () => sealTo(await importReceivingKey(key), 'x'))) !== null;
}

export async function importSigningKey(key: SigningKey): Promise<CryptoKey> {
  const { kty, crv, x } = key;
  return toCryptoKey(await importJWK({ kty, crv, x }, 'EdDSA'));
}

export async function importReceivingKey(key: ReceivingKey): Promise<CryptoKey> {
  const { kty, crv, x } = key;
  const point = key.kty === 'EC' ? { kty, crv, x, y: key.y } : { kty, crv, x };
  return toCryptoKey(await importJWK(point, 'ECDH-ES'));
}

/** A compact JWE of a text, which only the holder of the receiving key can read. */
export async function sealTo(key: CryptoKey, text: string): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .encrypt(key);
}

function toCryptoKey(key: CryptoKey | Uint8Array): CryptoKey {
  if (key instanceof Uint8Array) throw new TypeError('not a public key');
  return key;
}

async function attempt<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch {
    // Any error of WebCrypto means that the key is unusable.
    return null;
  }
}
