import type { Readable } from 'node:stream';

/** Reads a socket up to marks or lengths. A broken connection reads like an ended one. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  /** The bytes read but not yet taken, in order; joined only when they are taken or searched. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #ended = false;

  constructor(stream: Readable) {
    this.#chunks = stream.iterator({ destroyOnReturn: false });
  }

  /** All bytes up to and with `mark`; null when the stream ends first. */
  async until(mark: string): Promise<Buffer | null> {
    let at = this.#join().indexOf(mark, 0, 'latin1');
    while (at < 0) {
      if (!(await this.#more())) return null;
      at = this.#join().indexOf(mark, 0, 'latin1');
    }
    return this.#take(at + mark.length);
  }

  /** `count` bytes, or fewer when the stream ends first. */
  async exactly(count: number): Promise<Buffer> {
    while (this.#heldBytes < count && (await this.#more()));
    return this.#take(Math.min(count, this.#heldBytes));
  }

  /** The next available bytes, at least one; null at the end. */
  async some(): Promise<Buffer | null> {
    if (this.#heldBytes === 0 && !(await this.#more())) return null;
    return this.#take(this.#heldBytes);
  }

  /** Everything up to the end of the stream. */
  async rest(): Promise<Buffer> {
    while (await this.#more());
    return this.#take(this.#heldBytes);
  }

  /** Releases the stream, so that another reader can take it over. */
  async release(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const next = await this.#chunks.next().catch(() => ({ done: true as const, value: undefined }));
    if (next.done === true) {
      this.#ended = true;
      return false;
    }
    this.#held.push(next.value);
    this.#heldBytes += next.value.length;
    return true;
  }

  #join(): Buffer {
    const [only, ...others] = this.#held;
    const joined = others.length === 0 ? (only ?? Buffer.alloc(0)) : Buffer.concat(this.#held);
    this.#held = [joined];
    return joined;
  }

  #take(count: number): Buffer {
    const all = this.#join();
    this.#held = [all.subarray(count)];
    this.#heldBytes -= count;
    return all.subarray(0, count);
  }
}
