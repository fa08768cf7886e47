import { latin1Bytes } from '../byte_text.ts';
import { encodingsOf } from './encodings.ts';

/** Secrets shorter than this are not searched for: they would mask ordinary words (design section 5, invariant 4). */
export const MIN_SCRUBBED_BYTES = 8;

/** `holdFrom`: where a pattern begins that the bytes end within, else their length. `matches`: start, end, start, end ... */
export interface Found {
  readonly holdFrom: number;
  readonly matches: readonly number[];
}

const NO_MATCHES: readonly number[] = [];
const LARGEST_SHIFT = 255;

/**
 * A set of byte patterns and the table that finds them (Wu and Manber's multi-pattern search with blocks of two bytes):
 * of text that holds none of them, about one byte in `window - 1` is looked at. It prints nothing of what it holds.
 */
export class ScrubPatterns {
  readonly isEmpty: boolean;
  /** Length of the shortest pattern; the table covers this many first bytes of each. */
  readonly #window: number;
  readonly #patterns: readonly Uint8Array[];
  readonly #texts: readonly string[];
  /** By two bytes: how far a window that ends with them can move on; 0 when some pattern's window ends with them. */
  readonly #shifts = new Uint8Array(65_536);
  readonly #byLastBlock = new Map<number, Uint8Array[]>();
  readonly #firstBytes = new Uint8Array(256);

  /** `texts` are byte texts (latin1) of at least {@link MIN_SCRUBBED_BYTES} characters. */
  constructor(texts: readonly string[]) {
    this.#texts = texts;
    this.#patterns = texts.map(latin1Bytes);
    this.isEmpty = texts.length === 0;
    this.#window = this.isEmpty ? 0 : Math.min(...texts.map((text) => text.length));
    this.#shifts.fill(Math.min(this.#window - 1, LARGEST_SHIFT));
    for (const pattern of this.#patterns) this.#add(pattern);
  }

  #add(pattern: Uint8Array): void {
    this.#firstBytes[byteAt(pattern, 0)] = 1;
    for (let index = 1; index < this.#window; index += 1) {
      const block = blockAt(pattern, index);
      this.#shifts[block] = Math.min(byteAt(this.#shifts, block), this.#window - 1 - index);
    }
    const last = blockAt(pattern, this.#window - 1);
    this.#byLastBlock.set(last, [...(this.#byLastBlock.get(last) ?? []), pattern]);
  }

  /** Every match within `bytes`, overlapping ones too, and where a match may begin that `bytes` ends within. */
  find(bytes: Uint8Array): Found {
    const shifts = this.#shifts;
    const { length } = bytes;
    let holdFrom = length;
    let matches: number[] | null = null;
    for (let index = this.#window - 1; index < length;) {
      const shift = byteAt(shifts, blockAt(bytes, index));
      if (shift > 0) {
        index += shift;
        continue;
      }
      const start = index - this.#window + 1;
      for (const pattern of this.#byLastBlock.get(blockAt(bytes, index)) ?? []) {
        if (!agrees(bytes, start, pattern)) continue;
        if (start + pattern.length <= length) (matches ??= []).push(start, start + pattern.length);
        else holdFrom = Math.min(holdFrom, start);
      }
      index += 1;
    }
    return { holdFrom: this.#holdFromTail(bytes, holdFrom), matches: matches ?? NO_MATCHES };
  }

  /** A pattern may also begin in the last bytes, too late for a whole window. */
  #holdFromTail(bytes: Uint8Array, holdFrom: number): number {
    const end = Math.min(holdFrom, bytes.length);
    for (let start = Math.max(0, bytes.length - this.#window + 1); start < end; start += 1) {
      if (this.#firstBytes[byteAt(bytes, start)] === 0) continue;
      if (this.#patterns.some((pattern) => agrees(bytes, start, pattern))) return start;
    }
    return holdFrom;
  }

  /** Start and end of every match in byte text. */
  findInText(text: string): readonly number[] {
    if (!this.#mayBeIn(text)) return NO_MATCHES;
    const matches: number[] = [];
    for (const pattern of this.#texts) {
      for (let start = text.indexOf(pattern); start >= 0; start = text.indexOf(pattern, start + 1)) {
        matches.push(start, start + pattern.length);
      }
    }
    return matches;
  }

  /** False only when no pattern is in `text`. */
  #mayBeIn(text: string): boolean {
    if (this.isEmpty) return false;
    for (let index = this.#window - 1; index < text.length;) {
      const block = ((text.charCodeAt(index - 1) & 0xff) << 8) | (text.charCodeAt(index) & 0xff);
      const shift = byteAt(this.#shifts, block);
      if (shift === 0) return true;
      index += shift;
    }
    return false;
  }

  toJSON(): string {
    return '[secret]';
  }
}

/** Compiles what a reply on a credentialed path is searched for; keep it as long as the credential's version lasts. */
export function compileScrubPatterns(secrets: readonly string[]): ScrubPatterns {
  const texts = secrets
    .filter((secret) => new TextEncoder().encode(secret).length >= MIN_SCRUBBED_BYTES)
    .flatMap((secret) => encodingsOf(secret));
  return new ScrubPatterns([...new Set(texts)]);
}

/** Whether `bytes` from `start` on agree with `pattern`, as far as both go. */
function agrees(bytes: Uint8Array, start: number, pattern: Uint8Array): boolean {
  const count = Math.min(pattern.length, bytes.length - start);
  for (let index = 0; index < count; index += 1) {
    if (bytes[start + index] !== pattern[index]) return false;
  }
  return true;
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}

/** The two bytes that end at `index`, as one number. */
function blockAt(bytes: Uint8Array, index: number): number {
  return (byteAt(bytes, index - 1) << 8) | byteAt(bytes, index);
}
