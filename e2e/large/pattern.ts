import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { crc32 } from 'node:zlib';

const BLOCK = randomBytes(256 * 1024);

/** Writes `bytes` bytes of a known pattern, with backpressure; as a chunked body if asked to. */
export async function writePattern(to: Writable, bytes: number, options: { chunked?: boolean } = {}): Promise<void> {
  for (let left = bytes; left > 0; left -= BLOCK.length) {
    const piece = left < BLOCK.length ? BLOCK.subarray(0, left) : BLOCK;
    const framed = options.chunked === true ? [`${piece.length.toString(16)}\r\n`, piece, '\r\n'] : [piece];
    let roomy = true;
    for (const part of framed) roomy = to.write(part);
    if (to.destroyed) throw new Error('the connection is gone');
    if (!roomy) await once(to, 'drain');
  }
  if (options.chunked === true) to.write('0\r\n\r\n');
}

/** The checksum of `bytes` bytes of the pattern. */
export function patternChecksum(bytes: number): number {
  let sum = 0;
  for (let left = bytes; left > 0; left -= BLOCK.length)
    sum = crc32(BLOCK.subarray(0, Math.min(left, BLOCK.length)), sum);
  return sum;
}

/** Removes the framing of a chunked body. Returns the payload's length and checksum. */
export class BodySum {
  bytes = 0;
  sum = 0;
  done = false;
  readonly #length: number | null;
  #line = '';
  #left = 0;
  #afterData = false;

  /** `length` null: chunked. */
  constructor(length: number | null) {
    this.#length = length;
    this.#left = length ?? 0;
  }

  take(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.done;) {
      if (this.#left > 0) at += this.#data(piece.subarray(at, at + this.#left));
      else at += this.#framing(piece[at] ?? 0);
    }
  }

  #data(data: Buffer): number {
    this.sum = crc32(data, this.sum);
    this.bytes += data.length;
    this.#left -= data.length;
    if (this.#left === 0) {
      this.done = this.#length !== null;
      this.#afterData = true;
    }
    return data.length;
  }

  #framing(byte: number): number {
    this.#line += String.fromCharCode(byte);
    if (!this.#line.endsWith('\r\n')) return 1;
    if (this.#afterData) this.#afterData = false;
    else if (this.#left === 0 && this.#line === '0\r\n') this.#left = -1;
    else if (this.#left < 0) this.done = true;
    else this.#left = Number.parseInt(this.#line, 16);
    this.#line = '';
    return 1;
  }
}

/** Reads a head and its body from a connection; resolves once the body is complete. */
export async function readLarge(from: Readable, length: number | null): Promise<{ head: string; body: BodySum }> {
  const body = new BodySum(length);
  let head = '';
  for await (const chunk of from.iterator({ destroyOnReturn: false })) {
    const piece: Buffer = chunk;
    if (head.endsWith('\r\n\r\n')) {
      body.take(piece);
    } else {
      const seen = head + piece.toString('latin1');
      const end = seen.indexOf('\r\n\r\n');
      const taken = end < 0 ? piece.length : end + 4 - head.length;
      head = seen.slice(0, head.length + taken);
      body.take(piece.subarray(taken));
    }
    if (body.done) return { head, body };
  }
  throw new Error(`the connection ended after ${body.bytes} bytes of the body`);
}
