import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, importJWK } from 'jose';
import { Secret } from '../../shared/model/secret.ts';
import { signingKey, type SigningKey } from '../../shared/wire/sidecars.ts';
import type { Vault } from './vault.ts';

/** The control plane's identity for its sidecars: an id, and the key that signs its replies. */
export interface ControlPlane {
  readonly id: string;
  readonly publicKey: SigningKey;
  /** Signs a JSON payload as a compact JWS. */
  sign(typ: string, payload: unknown): Promise<string>;
}

/** The signing key as stored: the vault encrypts the private half. */
interface StoredControlKey {
  readonly publicKey: string;
  readonly sealedPrivateKey: string;
}

/** The vault place of the private half. */
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

/** Null if this vault cannot decrypt the key. */
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
