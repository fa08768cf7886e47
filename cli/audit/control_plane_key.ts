import { join } from 'node:path';
import { type CryptoKey, importJWK } from 'jose';
import { identityPath, loadIdentity } from '../../machine/sidecar_identity.ts';
import type { Call } from '../command_line.ts';
import { homeOf } from '../up/home.ts';

/** The key that this machine's sidecar pinned; null if it is not enrolled at this control plane. */
export async function pinnedKey({ context, options }: Call, controlPlaneId: string): Promise<CryptoKey | null> {
  const identity = await loadIdentity(identityPath(join(homeOf(context, options), 'sidecar')));
  return identity.ok && identity.value?.controlPlaneId === controlPlaneId ? identity.value.controlPlaneKey : null;
}

/** The Ed25519 key with this `x` (RFC 8037); null if it is none. */
export async function publicKey(x: string): Promise<CryptoKey | null> {
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x }, 'EdDSA').catch(() => null);
  return key instanceof Uint8Array ? null : key;
}
