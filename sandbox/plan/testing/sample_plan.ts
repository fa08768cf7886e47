import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { PLAN_LOCK_TYP, type PlanLockContent } from '../../../shared/wire/plan/plan_lock.ts';
import type { LockKey } from '../lock_key.ts';

export const SIDECAR_ID = `sdc_${'0'.repeat(26)}`;
export const IMAGE_ID = `sha256:${'a'.repeat(64)}`;

/** A plan with a step that has a reach and one that has none. */
export const PLAN_TEXT = `version: 1
name: nightly
image: agent-tools:1
steps:
  - id: fetch
    command: [curl, --fail, https://api.example.com/items]
    trust:
      effect: read
      hosts: [api.example.com]
    timeout_seconds: 60
  - id: count
    command: [wc, -l]
    collect:
      - path: /home/agent/size.txt
`;

/** A sidecar's signing key, as the sidecar itself signs locks with it. */
export interface TestSigner {
  readonly key: LockKey;
  /** What `identity.json` holds of it, the private half too. */
  readonly identity: Readonly<Record<string, unknown>>;
  sign(content: PlanLockContent, changed?: { readonly typ?: string; readonly sidecarId?: string }): Promise<string>;
}

export async function testSigner(): Promise<TestSigner> {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  return {
    key: { sidecarId: SIDECAR_ID, publicKey },
    identity: { version: 1, sidecar_id: SIDECAR_ID, signing_key: await exportJWK(privateKey) },
    sign: (content, { typ = PLAN_LOCK_TYP, sidecarId = SIDECAR_ID } = {}) => {
      const payload = { ...content, sidecar_id: sidecarId, issued_at: '2026-01-01T00:00:00.000Z' };
      return new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
        .setProtectedHeader({ alg: 'EdDSA', typ })
        .sign(privateKey);
    },
  };
}

export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
