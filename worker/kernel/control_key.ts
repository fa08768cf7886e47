import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, importJWK } from 'jose';
import { Secret } from '../../shared/model/secret.ts';
import { signingKey, type SigningKey } from '../../shared/wire/sidecars.ts';
import type { Vault } from './vault.ts';

/** The control plane as its sidecars know it: an id, and the key that signs what they act on. */
export interface ControlPlane {
  readonly id: string;
  readonly publicKey: SigningKey;
  /** A compact JWS of the JSON payload. */
  sign(typ: string, payload: unknown): Promise<string>;
}

/** The signing key as it is stored: the private half is sealed in the vault. */
export interface StoredControlKey {
  readonly publicKey: string;
  readonly sealedPrivateKey: string;
}

/** Where the private half is sealed. */
export const CONTROL_KEY_PLACE = { owner: 'installation', path: 'signing-key', version: 1 };

export async function makeControlKey(vault: Vault): Promise<StoredControlKey> {
  const pair = await generateKeyPair('Ed25519', { extractable: true });
  const { kty, crv, x } = await exportJWK(pair.publicKey);
  const privateKey = new Secret(JSON.stringify(await exportJWK(pair.privateKey)));
  return {
    publicKey: JSON.stringify(signingKey.parse({ kty, crv, x })),
    sealedPrivateKey: await vault.seal(CONTROL_KEY_PLACE, privateKey),
  };
}

/** Null when the key cannot be opened with this vault. */
export async function openControlPlane(
  id: string,
  stored: StoredControlKey,
  vault: Vault,
): Promise<ControlPlane | null> {
  const privateKey = await vault.open(CONTROL_KEY_PLACE, stored.sealedPrivateKey);
  if (privateKey === null) return null;
  const key = await importJWK({ ...JSON.parse(privateKey.reveal()), alg: 'EdDSA' }, 'EdDSA');
  if (key instanceof Uint8Array) return null;
  return {
    id,
    publicKey: signingKey.parse(JSON.parse(stored.publicKey)),
    sign: (typ, payload) => signJson(key, typ, payload),
  };
}

async function signJson(key: CryptoKey, typ: string, payload: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(payload));
  return new CompactSign(bytes).setProtectedHeader({ alg: 'EdDSA', typ }).sign(key);
}
