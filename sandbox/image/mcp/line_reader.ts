/** Splits a byte stream into lines at line feeds only: JSON text may contain other line breaks. */
export class LineReader {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #size = 0;

  /** A line longer than `maxBytes` is an error. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the non-blank lines that a piece completes. Throws if one is too long. */
  push(chunk: Uint8Array): readonly string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(this.rest());
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines.filter((line) => line !== '');
  }

  /** Takes the bytes since the last line feed and clears them. */
  rest(): string {
    const text = Buffer.concat(this.#parts).toString('utf8').trim();
    this.#parts = [];
    this.#size = 0;
    return text;
  }

  #keep(part: Uint8Array): void {
    this.#size += part.length;
    if (this.#size > this.#maxBytes) throw new Error(`a line is longer than ${this.#maxBytes} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }
}

const LINE_FEED = 0x0a;
