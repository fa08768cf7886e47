import type { Hash, Hmac } from 'node:crypto';
import { createHash, createHmac } from 'node:crypto';

type HashSource = string | ArrayBuffer | ArrayBufferView;

/** SHA-256, or HMAC-SHA-256 if keyed, from node:crypto behind the signer's interface. */
export class NodeSha256 {
  readonly #state: Hash | Hmac;

  constructor(secret?: HashSource) {
    this.#state = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: HashSource): void {
    this.#state.update(bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#state.digest());
  }
}

function bytesOf(source: HashSource): string | Uint8Array {
  if (typeof source === 'string') return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
}
