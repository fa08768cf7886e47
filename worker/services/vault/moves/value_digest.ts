import { canonicalJson } from '../../../../shared/audit/canonical_json.ts';
import type { Secret } from '../../../../shared/model/secret.ts';
import type { MoveTarget } from '../../../../shared/wire/vault_moves.ts';
import { fromBase64Url, toBase64Url } from '../../../kernel/encoding.ts';

const DIGEST_KEY_BYTES = 32;

/** A key for the digests of one value. Without it a digest tells nothing of the value. */
export function newDigestKey(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(DIGEST_KEY_BYTES)));
}

/** HMAC-SHA-256 over a value and where it belongs. `offered`: of who has it to give; `held`: of who stored it. */
export async function valueDigest(
  digestKey: string,
  label: 'offered' | 'held',
  target: MoveTarget,
  value: Secret,
): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', fromBase64Url(digestKey), algorithm, false, ['sign']);
  const text = new TextEncoder().encode(digestInput(label, target, value.reveal()));
  return toBase64Url(new Uint8Array(await crypto.subtle.sign('HMAC', key, text)));
}

/** The text of a digest. The proof of a holder is not that of an offer, and a source is the same only with the same fields. */
function digestInput(label: 'offered' | 'held', target: MoveTarget, value: string): string {
  const thing = target.kind === 'source' ? ['source', target.source, value] : ['value', value];
  return canonicalJson(['svc vault move', label, ...thing]);
}
