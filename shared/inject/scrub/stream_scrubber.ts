import type { Found, ScrubPatterns } from './patterns.ts';

const MASK = 0x2a;
const NOTHING = new Uint8Array(0);

/**
 * Masks every match in a byte stream with as many `*`, so that lengths stay true. Only a tail that is a proper prefix of a
 * pattern waits for the bytes after it; a chunk without a match passes uncopied.
 */
export class StreamScrubber {
  readonly #patterns: ScrubPatterns;
  /** The tail that waits, as it came. */
  #held: Uint8Array = NOTHING;
  /** How many of its first bytes belong to a match that began before it. */
  #heldMasked = 0;

  constructor(patterns: ScrubPatterns) {
    this.#patterns = patterns;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    if (chunk.length === 0) return [];
    if (this.#patterns.isEmpty) return [chunk];
    const bytes = this.#held.length === 0 ? chunk : joined(this.#held, chunk);
    const found = this.#patterns.find(bytes);
    const masked = this.#heldMasked > 0 || found.matches.length > 0;
    const output = masked ? this.#mask(bytes, found) : bytes.subarray(0, found.holdFrom);
    this.#held = found.holdFrom === bytes.length ? NOTHING : copyOf(bytes, found.holdFrom, bytes.length);
    return output.length === 0 ? [] : [output];
  }

  /** What still waits, when no more bytes come. It may hold a whole match that was also the beginning of a longer one. */
  flush(): Uint8Array[] {
    const rest = this.#held;
    if (rest.length === 0) return [];
    const { matches } = this.#patterns.find(rest);
    this.#held = NOTHING;
    return [this.#mask(rest, { holdFrom: rest.length, matches })];
  }

  /** What still waits, all of it masked: for a caller that can wait no longer and must not give a secret away. */
  maskHeld(): Uint8Array[] {
    this.#heldMasked = this.#held.length;
    return this.flush();
  }

  /** The bytes before `holdFrom`, masked. A match that begins later is found again when the held bytes are looked at. */
  #mask(bytes: Uint8Array, { holdFrom, matches }: Found): Uint8Array {
    const output = copyOf(bytes, 0, holdFrom);
    let maskedTo = this.#heldMasked;
    output.fill(MASK, 0, maskedTo);
    for (let index = 0; index < matches.length; index += 2) {
      const start = matches[index] ?? 0;
      const end = matches[index + 1] ?? 0;
      if (start >= holdFrom) continue;
      output.fill(MASK, start, end);
      maskedTo = Math.max(maskedTo, end);
    }
    this.#heldMasked = Math.max(0, maskedTo - holdFrom);
    return output;
  }
}

/** A copy, whatever kind of array it is: `slice` of a Buffer is a view, and the bytes are the caller's. */
function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end));
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
