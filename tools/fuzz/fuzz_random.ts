/** Random numbers that are reproducible from a seed (mulberry32). */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to `below` - 1. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.below(list.length)] ?? list[0];
  }
}

/** A number that depends on every character: for choices derived from the input itself, such as where it is cut. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** `bytes` cut into pieces of up to `most` bytes, determined by the seed. */
export function piecesOf(bytes: Uint8Array, seed: number, most: number): Uint8Array[] {
  const random = new SeededRandom(seed);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random.below(most);
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  return pieces;
}

type Change = (text: string, random: SeededRandom, words: readonly [string, ...string[]], other: string) => string;

const splice = (text: string, at: number, removed: number, inserted: string): string =>
  text.slice(0, at) + inserted + text.slice(at + removed);

const CHANGES: readonly [Change, ...Change[]] = [
  (text, random) => splice(text, random.below(text.length + 1), 1, String.fromCharCode(random.below(256))),
  (text, random) => splice(text, random.below(text.length + 1), 0, String.fromCharCode(random.below(256))),
  (text, random) => splice(text, random.below(text.length + 1), 1 + random.below(4), ''),
  (text, random, words) => splice(text, random.below(text.length + 1), random.below(3), random.pick(words)),
  (text, random, words) => splice(text, random.below(text.length + 1), 0, random.pick(words)),
  (text, random) => {
    const from = random.below(text.length + 1);
    return splice(text, random.below(text.length + 1), 0, text.slice(from, from + 1 + random.below(24)));
  },
  (text, random, _words, other) =>
    text.slice(0, random.below(text.length + 1)) + other.slice(random.below(other.length + 1)),
  (text, random) => {
    const at = random.below(text.length + 1);
    return splice(text, at, 1, otherCase(text[at] ?? ''));
  },
];

/** An ASCII letter in the other case; anything else unchanged, because it may have no other case in latin1. */
function otherCase(character: string): string {
  return /[a-z]/.test(character)
    ? character.toUpperCase()
    : character.replace(/[A-Z]/, (letter) => letter.toLowerCase());
}

/** Longer inputs find nothing that shorter ones do not. */
const MOST_CHARACTERS = 2000;

/** `text` after one to five small changes: bytes, words of the dictionary, copies of its own parts, parts of another input. */
export function mutate(
  text: string,
  random: SeededRandom,
  words: readonly [string, ...string[]],
  other: string,
): string {
  let changed = text;
  for (let count = 1 + random.below(5); count > 0; count -= 1)
    changed = random.pick(CHANGES)(changed, random, words, other);
  return changed.slice(0, MOST_CHARACTERS);
}
