const LINE_FEED = 10;

/** Splits a byte stream into lines up to a maximum length. Each byte is copied once, wherever the stream is split. */
export class LineSplitter {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in `chunk`, without line feeds; null if one exceeds the limit. */
  push(chunk: Uint8Array): readonly string[] | null {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      if (!this.#add(chunk.subarray(start, end))) return null;
      lines.push(this.#take());
      start = end + 1;
    }
    return this.#add(chunk.subarray(start)) ? lines : null;
  }

  #add(part: Uint8Array): boolean {
    if (this.#bytes + part.length > this.#maxBytes) return false;
    if (part.length > 0) this.#parts.push(part);
    this.#bytes += part.length;
    return true;
  }

  #take(): string {
    const line = Buffer.concat(this.#parts, this.#bytes).toString('utf8');
    this.#parts = [];
    this.#bytes = 0;
    return line.endsWith('\r') ? line.slice(0, -1) : line;
  }
}
