/** The number of random words that a search needs. */
export const SEARCH_KEY_WORDS = 5;

const NO_MATCHES: readonly number[] = [];

/** The width of the blocks in which a text is looked up, and their stride, by the length of the shortest pattern. */
const BLOCKS = [
  { shortest: 31, block: 16, stride: 16 },
  { shortest: 23, block: 16, stride: 8 },
  { shortest: 19, block: 16, stride: 4 },
  { shortest: 16, block: 16, stride: 1, onlySparse: true },
  { shortest: 15, block: 8, stride: 8 },
  { shortest: 11, block: 8, stride: 4 },
  { shortest: 8, block: 8, stride: 1 },
];

type Key = readonly [number, number, number, number, number];

/** The position of a block in a pattern: `offset` bytes from the start of pattern number `index`. */
interface BlockPosition {
  readonly index: number;
  readonly offset: number;
}

/**
 * Finds every occurrence of a set of secret patterns, each of at least eight bytes, in a time that tells nothing about them:
 * at each stride of the text one block is hashed and looked up, whatever it holds. (A search that moves on the faster, the
 * less the text looks like a pattern, can be timed by whoever chooses the text, and read pair of letters by pair of letters.)
 * Only a block that is equal to a whole block of a pattern takes longer, and to write one takes a guess of at least six bytes
 * of the secret at once, of twelve where the secret is longer than eighteen. The hash has a random key, so which texts share a place in the table says nothing either.
 *
 * A pattern that occurs at any place has one block on the grid within its first `stride` offsets; those blocks are the table.
 * The work is linear in the text, also where patterns and text are periodic.
 */
export class BlockSearch {
  readonly #patterns: readonly Uint8Array[];
  /** For each pattern, the length of its longest prefix that occurs again at each position (its Z function). */
  readonly #overlaps: readonly Int32Array[];
  readonly #key: Key;
  readonly #block: number;
  readonly #stride: number;
  /** An open-addressing table of block hashes; 0 is an empty slot. */
  readonly #slots: Int32Array;
  readonly #places = new Map<number, BlockPosition[]>();

  /**
   * `key`: {@link SEARCH_KEY_WORDS} random words, new for each search. `isSparse`: the patterns spell a byte of the secret in two,
   * so that short ones need blocks twice as wide.
   */
  constructor(patterns: readonly Uint8Array[], key: Uint32Array, isSparse = false) {
    const shortest = Math.min(...patterns.map((pattern) => pattern.length));
    const blocks = BLOCKS.find((row) => shortest >= row.shortest && (isSparse || row.onlySparse !== true));
    if (blocks === undefined || key.length !== SEARCH_KEY_WORDS) {
      throw new TypeError('patterns need at least eight bytes, and a key five words');
    }
    this.#patterns = patterns;
    this.#overlaps = patterns.map(overlapsOf);
    const [first = 0, second = 0, third = 0, fourth = 0, last = 0] = key;
    this.#key = [first | 1, second | 1, third | 1, fourth | 1, last | 1];
    this.#block = blocks.block;
    this.#stride = blocks.stride;
    this.#slots = new Int32Array(slotCount(patterns.length * this.#stride));
    for (const [index, pattern] of patterns.entries()) this.#add(pattern, index);
  }

  #add(pattern: Uint8Array, index: number): void {
    const view = viewOf(pattern);
    // The last offset first: if a text contains several of them, its candidates are then in order.
    for (let offset = this.#stride - 1; offset >= 0; offset -= 1) {
      const slot = this.#slotOf(hashOf(view, offset, this.#key, this.#block === 16));
      this.#places.set(slot, [...(this.#places.get(slot) ?? []), { index, offset }]);
    }
  }

  /** The slot of `hash`; takes a free one if there is none. */
  #slotOf(hash: number): number {
    const slots = this.#slots;
    let slot = hash & (slots.length - 1);
    while (slots[slot] !== 0 && slots[slot] !== hash) slot = (slot + 1) & (slots.length - 1);
    slots[slot] = hash;
    return slot;
  }

  /** Start, end, start, end ... of every match, including overlapping ones. */
  find(bytes: Uint8Array): readonly number[] {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const key = this.#key;
    const stride = this.#stride;
    const isWide = this.#block === 16;
    const view = viewOf(bytes);
    const last = bytes.length - this.#block;
    let candidates: Candidates | null = null;
    for (let at = 0; at <= last; at += stride) {
      const hash = hashOf(view, at, key, isWide);
      for (let slot = hash & mask; slots[slot] !== 0; slot = (slot + 1) & mask) {
        if (slots[slot] !== hash) continue;
        candidates ??= new Candidates(bytes, this.#patterns, this.#overlaps);
        for (const { index, offset } of this.#places.get(slot) ?? []) candidates.check(index, at - offset);
        break;
      }
    }
    return candidates === null ? NO_MATCHES : candidates.matches;
  }
}

/** A keyed hash of the block at `at`, of eight bytes or (`isWide`) sixteen. Never 0. */
function hashOf(view: DataView, at: number, key: Key, isWide: boolean): number {
  let hash = (Math.imul(view.getInt32(at, true), key[0]) + Math.imul(view.getInt32(at + 4, true), key[1])) | 0;
  if (isWide) {
    hash = (hash + Math.imul(view.getInt32(at + 8, true), key[2])) | 0;
    hash = (hash + Math.imul(view.getInt32(at + 12, true), key[3])) | 0;
  }
  hash = Math.imul(hash ^ (hash >>> 15), key[4]);
  hash ^= hash >>> 13;
  return hash === 0 ? 1 : hash;
}

/** Candidates of one text, compared in order, so that no byte of the text is compared twice with one pattern. */
class Candidates {
  readonly matches: number[] = [];
  readonly #bytes: Uint8Array;
  readonly #patterns: readonly Uint8Array[];
  readonly #overlaps: readonly Int32Array[];
  /** The text from `from` to `to` equals the start of the pattern, and differs after that. */
  readonly #from: Int32Array;
  readonly #to: Int32Array;

  constructor(bytes: Uint8Array, patterns: readonly Uint8Array[], overlaps: readonly Int32Array[]) {
    this.#bytes = bytes;
    this.#patterns = patterns;
    this.#overlaps = overlaps;
    this.#from = new Int32Array(patterns.length);
    this.#to = new Int32Array(patterns.length);
  }

  check(index: number, start: number): void {
    const pattern = this.#patterns[index];
    if (pattern === undefined || start < 0 || start + pattern.length > this.#bytes.length) return;
    if (this.#countMatching(pattern, index, start) === pattern.length) this.matches.push(start, start + pattern.length);
  }

  /** How many bytes from `start` on match the pattern. */
  #countMatching(pattern: Uint8Array, index: number, start: number): number {
    const seen = (this.#to[index] ?? 0) - start;
    let count = seen <= 0 ? 0 : Math.min(seen, this.#overlaps[index]?.[start - (this.#from[index] ?? 0)] ?? 0);
    if (count < seen) return count;
    while (count < pattern.length && this.#bytes[start + count] === pattern[count]) count += 1;
    this.#from[index] = start;
    this.#to[index] = start + count;
    return count;
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A power of two, at most a quarter full. */
function slotCount(blocks: number): number {
  return 2 ** Math.ceil(Math.log2(blocks * 4));
}

/** By position, how many bytes from there on match the prefix. */
function overlapsOf(pattern: Uint8Array): Int32Array {
  const overlaps = new Int32Array(pattern.length);
  overlaps[0] = pattern.length;
  for (let place = 1, from = 0, to = 0; place < pattern.length; place += 1) {
    let count = place < to ? Math.min(to - place, overlaps[place - from] ?? 0) : 0;
    while (place + count < pattern.length && pattern[count] === pattern[place + count]) count += 1;
    overlaps[place] = count;
    if (place + count > to) [from, to] = [place, place + count];
  }
  return overlaps;
}
