import { CompactEncrypt, importJWK } from 'jose';
import type { ApprovalView, ShownRequest } from '../../shared/wire/approval_views.ts';

/** A compact JWE of a request that waits, which only the page that asked for it can open. */
export async function sealView({ key }: ApprovalView, request: ShownRequest): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(request)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .encrypt(await importJWK(key, 'ECDH-ES'));
}
