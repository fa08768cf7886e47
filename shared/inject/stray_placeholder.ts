import type { HostBinding } from '../model/host_binding.ts';
import type { RequestHead } from '../net/http/http1_head.ts';
import { basicPair } from './basic.ts';
import { byteTextOf } from './byte_text.ts';

/**
 * The binding whose placeholder a request carries to a host that is not bound: the client expects a credential there. Looks
 * at the target and the header values, also at both parts of a Basic pair. Null if there is none.
 */
export function findStrayPlaceholder(
  bindings: readonly HostBinding[],
  head: Pick<RequestHead, 'target' | 'fields'>,
): HostBinding | null {
  if (bindings.length === 0) return null;
  const texts = [head.target];
  for (const { name, value } of head.fields) {
    texts.push(value);
    const pair = name === 'authorization' ? basicPair(value) : null;
    if (pair !== null) texts.push(pair.username, pair.password);
  }
  return bindings.find((binding) => isCarried(binding, texts)) ?? null;
}

function isCarried({ emit }: HostBinding, texts: readonly string[]): boolean {
  if (emit.mechanism !== 'sentinel-swap') return false;
  const sentinel = byteTextOf(emit.sentinel);
  return texts.some((text) => text.includes(sentinel));
}
