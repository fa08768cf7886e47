import { latin1Bytes } from '../byte_text.ts';
import { BlockSearch } from './block_search.ts';
import { encodingsOf } from './encodings.ts';
import { undoEscapes } from './escapes.ts';
import type { Unescaped } from './escapes.ts';

/** Secrets shorter than this are not searched for: they would mask ordinary words (design section 5, invariant 4). */
export const MIN_SCRUBBED_BYTES = 8;

const NO_MATCHES: readonly number[] = [];
const MASK = 0x2a;
const LF = 0x0a;
const CR = 0x0d;
/** The number of nested escape levels that are undone, such as JSON in JSON. */
const MOST_LEVELS = 4;
/** A spelling with more bytes than this per byte of the secret is not found across two pieces of a stream. */
const MOST_EXPANSION = 8;
const LEAST_TAIL_BYTES = 1024;

/** The patterns to search for in a credentialed reply. Prints none of its content. */
export class ScrubPatterns {
  readonly isEmpty: boolean;
  /**
   * How many bytes a stream holds back, so that no match is cut in two. It depends only on the length of the longest secret,
   * rounded up to a power of two, because an observer can see how much is held back.
   */
  readonly tailBytes: number;
  readonly #searches: readonly BlockSearch[];

  /** `secrets`: each of at least {@link MIN_SCRUBBED_BYTES} in UTF-8. `key`: see {@link BlockSearch}. */
  constructor(secrets: readonly string[], key: Uint32Array) {
    this.isEmpty = secrets.length === 0;
    const longest = Math.max(0, ...secrets.map(byteLength));
    this.tailBytes = Math.max(LEAST_TAIL_BYTES, 2 ** Math.ceil(Math.log2(longest * MOST_EXPANSION)));
    this.#searches = searchesOf(secrets, key);
  }

  /**
   * Start, end, start, end ... of every whole match, including overlapping ones. Text is searched again with its escapes
   * undone; all positions are in the original bytes.
   */
  find(bytes: Uint8Array, isText = true): readonly number[] {
    const matches = this.#findLiterally(bytes);
    return isText && !this.isEmpty ? this.#findEscaped(bytes, matches) : matches;
  }

  #findLiterally(bytes: Uint8Array): readonly number[] {
    let matches = NO_MATCHES;
    for (const search of this.#searches) {
      const found = search.find(bytes);
      if (found.length > 0) matches = [...matches, ...found];
    }
    return matches;
  }

  #findEscaped(bytes: Uint8Array, plain: readonly number[]): readonly number[] {
    const levels: Unescaped[] = [];
    let matches = plain;
    for (let text = bytes; levels.length < MOST_LEVELS;) {
      const unescaped = undoEscapes(text);
      if (unescaped === null) break;
      levels.unshift(unescaped);
      text = unescaped.bytes;
      const found = this.#findLiterally(text);
      if (found.length > 0) matches = [...matches, ...originsOf(found, levels)];
    }
    return matches;
  }

  toJSON(): string {
    return '[secret]';
  }
}

/** One search for all spellings, or two: the sparse spellings of a short secret need wider blocks than the others. */
function searchesOf(secrets: readonly string[], key: Uint32Array): readonly BlockSearch[] {
  const encodings = secrets.map(encodingsOf);
  const dense = patternsOf(encodings.flatMap((each) => each.dense));
  const sparse = patternsOf(encodings.flatMap((each) => each.sparse));
  if (dense.length === 0) return [];
  if (dense.every((pattern) => pattern.length >= LONG_PATTERN)) return [new BlockSearch([...dense, ...sparse], key)];
  const wide = sparse.filter((pattern) => pattern.length >= 2 * MIN_SCRUBBED_BYTES);
  return [new BlockSearch(dense, key), ...(wide.length === 0 ? [] : [new BlockSearch(wide, key, true)])];
}

/** From this length on a search uses blocks of sixteen bytes. */
const LONG_PATTERN = 19;

function patternsOf(texts: readonly string[]): Uint8Array[] {
  return [...new Set(texts)].filter((text) => text.length >= MIN_SCRUBBED_BYTES).map(latin1Bytes);
}

/** `levels`: the innermost first. */
function originsOf(matches: readonly number[], levels: readonly Unescaped[]): number[] {
  const origins: number[] = [];
  for (let index = 0; index < matches.length; index += 2) {
    let range: readonly [number, number] = [matches[index] ?? 0, matches[index + 1] ?? 0];
    for (const { origin } of levels) range = origin(...range);
    origins.push(...range);
  }
  return origins;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Compiles the patterns for a credentialed reply. Keep the result as long as the credential's version lasts. `key`: see {@link BlockSearch}. */
export function compileScrubPatterns(secrets: readonly string[], key: Uint32Array): ScrubPatterns {
  return new ScrubPatterns(
    secrets.filter((secret) => byteLength(secret) >= MIN_SCRUBBED_BYTES),
    key,
  );
}

/** Writes `*` over the bytes from `start` to `end`. Line breaks stay, because they frame lines and events. */
export function maskRange(bytes: Uint8Array, start: number, end: number): void {
  for (let index = Math.max(0, start); index < Math.min(end, bytes.length); index += 1) {
    if (bytes[index] !== LF && bytes[index] !== CR) bytes[index] = MASK;
  }
}

/** Masks `matches` as returned by {@link ScrubPatterns.find}. */
export function maskMatches(bytes: Uint8Array, matches: readonly number[]): void {
  for (let index = 0; index < matches.length; index += 2)
    maskRange(bytes, matches[index] ?? 0, matches[index + 1] ?? 0);
}
