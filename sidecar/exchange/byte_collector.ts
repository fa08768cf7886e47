/** Pieces of at least this size are kept as they are; smaller ones are copied together. */
const KEPT_WHOLE_BYTES = 16 * 1024;
const FIRST_BLOCK_BYTES = 1024;
const LARGEST_BLOCK_BYTES = 64 * 1024;
const NOTHING = new Uint8Array(0);

/**
 * Collects bytes that arrive in pieces of any size. Small pieces are copied into larger blocks: otherwise each would keep a
 * buffer alive many times its size, and a body sent byte by byte would take gigabytes.
 */
export class ByteCollector {
  readonly #chunks: Uint8Array[] = [];
  #block = NOTHING;
  #used = 0;
  #blockBytes = FIRST_BLOCK_BYTES;

  add(piece: Uint8Array): void {
    if (piece.length >= KEPT_WHOLE_BYTES) {
      this.#closeBlock();
      this.#chunks.push(piece);
      return;
    }
    for (let rest = piece; rest.length > 0;) {
      if (this.#used === this.#block.length) this.#newBlock();
      const copied = rest.subarray(0, this.#block.length - this.#used);
      this.#block.set(copied, this.#used);
      this.#used += copied.length;
      rest = rest.subarray(copied.length);
    }
  }

  /** Everything collected so far, in order. */
  chunks(): readonly Uint8Array[] {
    this.#closeBlock();
    return this.#chunks;
  }

  #newBlock(): void {
    this.#closeBlock();
    this.#block = new Uint8Array(this.#blockBytes);
    this.#blockBytes = Math.min(this.#blockBytes * 2, LARGEST_BLOCK_BYTES);
  }

  /** Returns the filled part of the block; the rest is still free. */
  #closeBlock(): void {
    if (this.#used === 0) return;
    this.#chunks.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}
