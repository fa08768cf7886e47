import type { HashPort } from './outgoing_request.ts';
import { joinBytes } from './join_bytes.ts';

/** SHA-256 and HMAC-SHA-256 from Web Crypto, which every runtime has: of whole texts, as it is not incremental. */
export const WebHash: HashPort = class {
  readonly #secret: Uint8Array<ArrayBuffer> | null;
  readonly #parts: Uint8Array[] = [];

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined ? null : joinBytes([bytesOf(secret)]);
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#parts.push(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    const data = joinBytes(this.#parts);
    if (this.#secret === null) return new Uint8Array(await crypto.subtle.digest('SHA-256', data));
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', this.#secret, algorithm, false, ['sign']);
    return new Uint8Array(await crypto.subtle.sign('HMAC', key, data));
  }
};

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
