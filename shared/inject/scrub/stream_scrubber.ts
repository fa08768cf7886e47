import type { ScrubPatterns } from './patterns.ts';
import { maskRange } from './patterns.ts';
import type { PartEnds, ReplyFormat } from './reply_format.ts';
import { PLAIN_TEXT } from './reply_format.ts';

const NOTHING = new Uint8Array(0);
const NO_MATCHES: readonly number[] = [];

/**
 * Masks every whole match in a byte stream, keeping its length. Whether, when and in which pieces bytes are sent never
 * depends on the secrets (design section 13, invariant 9): a tail of constant size is always held back, and is sent with
 * further bytes, at the end of a part of the format, or at the end of the stream. An incomplete match is never masked.
 *
 * Input smaller than a tail is gathered before it is searched, so each byte is searched and copied a bounded number of
 * times, even for tiny pieces.
 */
export class StreamScrubber {
  readonly #patterns: ScrubPatterns;
  readonly #isText: boolean;
  readonly #partEnds: PartEnds | null;
  /** The bytes held back, unmasked, and the matches that end in them or later, by offset from their start. */
  #tail: Uint8Array = NOTHING;
  #tailMatches: readonly number[] = NO_MATCHES;
  /** The bytes after the tail that were not searched yet: the first `#gathered`, fewer than a tail. */
  #gathering: Uint8Array = NOTHING;
  #gathered = 0;
  #maskedAny = false;

  constructor(patterns: ScrubPatterns, format: ReplyFormat = PLAIN_TEXT) {
    this.#patterns = patterns;
    this.#isText = format.isText;
    this.#partEnds = patterns.isEmpty ? null : format.partEnds();
  }

  /** Whether a match was masked since the last call. */
  takeMasked(): boolean {
    const masked = this.#maskedAny;
    this.#maskedAny = false;
    return masked;
  }

  /** The bytes to send now, in order; a large chunk without a match is not copied. It never modifies or keeps `chunk`. */
  push(chunk: Uint8Array): Uint8Array[] {
    if (chunk.length === 0) return [];
    if (this.#patterns.isEmpty) return [chunk];
    const partEnd = this.#partEnds?.(chunk) ?? -1;
    const ended = partEnd < 0 ? 0 : this.#gathered + partEnd;
    const tooMany = this.#gathered + chunk.length - this.#patterns.tailBytes;
    return ended === 0 && tooMany < 0
      ? this.#gather(chunk)
      : this.#release(this.#takeGathered(chunk), Math.max(ended, tooMany));
  }

  /** The bytes still held back, at the end of the stream. */
  flush(): Uint8Array[] {
    const bytes = this.#takeGathered(NOTHING);
    return this.#release(bytes, bytes.length);
  }

  #gather(chunk: Uint8Array): [] {
    if (this.#gathering.length === 0) this.#gathering = new Uint8Array(this.#patterns.tailBytes);
    this.#gathering.set(chunk, this.#gathered);
    this.#gathered += chunk.length;
    return [];
  }

  /** The gathered bytes followed by `chunk`. */
  #takeGathered(chunk: Uint8Array): Uint8Array {
    if (this.#gathered === 0) return chunk;
    const bytes = joinBytes(this.#gathering.subarray(0, this.#gathered), chunk);
    this.#gathered = 0;
    return bytes;
  }

  /** Sends the tail and the first `leaving` of `bytes`; holds back the rest, at most a tail. */
  #release(bytes: Uint8Array, leaving: number): Uint8Array[] {
    const tail = this.#tail;
    const body = bytes.subarray(0, leaving);
    const matches = this.#matchesIn(tail, bytes);
    const end = tail.length + leaving;
    this.#tail = leaving === bytes.length ? NOTHING : copyOf(bytes.subarray(leaving));
    this.#tailMatches = NO_MATCHES;
    if (matches.length === 0) return dropEmpty([tail, body]);
    this.#maskedAny = true;
    const output = joinBytes(tail, body);
    const later: number[] = [];
    for (let index = 0; index < matches.length; index += 2) {
      const [from = 0, to = 0] = matches.slice(index, index + 2);
      maskRange(output, from, to);
      if (to > end) later.push(from - end, to - end);
    }
    this.#tailMatches = later;
    return dropEmpty([output.subarray(0, tail.length), output.subarray(tail.length)]);
  }

  /** Matches in the tail and the bytes after it, by offset from the start of the tail. */
  #matchesIn(tail: Uint8Array, bytes: Uint8Array): readonly number[] {
    if (tail.length === 0) return this.#patterns.find(bytes, this.#isText);
    const { tailBytes } = this.#patterns;
    const seam = this.#patterns.find(joinBytes(tail, bytes.subarray(0, tailBytes)), this.#isText);
    const later = bytes.length <= tailBytes ? NO_MATCHES : this.#patterns.find(bytes, this.#isText);
    if (this.#tailMatches.length + seam.length + later.length === 0) return NO_MATCHES;
    return [...this.#tailMatches, ...seam, ...later.map((place) => place + tail.length)];
  }
}

function dropEmpty(pieces: readonly Uint8Array[]): Uint8Array[] {
  return pieces.filter((piece) => piece.length > 0);
}

/** Always a copy: `slice` of a Buffer is only a view, and the bytes belong to the caller. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
