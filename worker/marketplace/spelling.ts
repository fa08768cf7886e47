/** A shorter word has too many neighbours. */
const MIN_LETTERS = 4;
/** From this length on, two letters may be wrong. */
const LONG_LETTERS = 8;
/** A longer word is no misspelled name. */
const MAX_LETTERS = 32;
const MAX_SIMILAR = 5;
/** A similar word counts only if it is this many times as frequent: a rare name is not a misspelled frequent one. */
const TIMES_AS_FREQUENT = 4;

/** The words that names and titles consist of, with how often they occur, for queries that are misspelled. */
export class Vocabulary {
  /** By first letter, because that one is rarely wrong. */
  readonly #words = new Map<string, Map<string, number>>();

  /** Counts words once more, or once less with `by` -1. */
  count(words: Iterable<string>, by: 1 | -1): void {
    for (const word of new Set(words)) {
      if (word.length < MIN_LETTERS - 1 || word.length > MAX_LETTERS) continue;
      const initial = word.charAt(0);
      const known = this.#words.get(initial) ?? new Map<string, number>();
      const times = (known.get(word) ?? 0) + by;
      if (times > 0) known.set(word, times);
      else known.delete(word);
      this.#words.set(initial, known);
    }
  }

  /** The words that were perhaps meant: those with the fewest wrong letters, the most frequent first. Empty for a known word. */
  similarTo(word: string): readonly string[] {
    if (word.length < MIN_LETTERS || word.length > MAX_LETTERS) return [];
    let most = word.length >= LONG_LETTERS ? 2 : 1;
    let near: { readonly word: string; readonly times: number }[] = [];
    let known = 0;
    for (const [other, times] of this.#words.get(word.charAt(0)) ?? []) {
      if (other.startsWith(word)) known += times;
      else {
        const wrong = wrongLetters(word, other, most);
        if (wrong > most) continue;
        if (wrong < most) near = [];
        most = wrong;
        near.push({ word: other, times });
      }
    }
    return near
      .filter(({ times }) => times >= known * TIMES_AS_FREQUENT)
      .toSorted((one, other) => other.times - one.times || (one.word < other.word ? -1 : 1))
      .slice(0, MAX_SIMILAR)
      .map((each) => each.word);
  }
}

/**
 * How many letters are missing, too many, wrong or swapped with the next one (optimal string alignment); more than `most`
 * is any number above it.
 */
export function wrongLetters(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  let leastOfLast = 0;
  for (let at = 1; at <= one.length; at += 1) {
    const row = [at];
    let least = at;
    for (let to = 1; to <= other.length; to += 1) {
      const isSame = one.charCodeAt(at - 1) === other.charCodeAt(to - 1);
      const isSwapped =
        at > 1 &&
        to > 1 &&
        one.charCodeAt(at - 1) === other.charCodeAt(to - 2) &&
        one.charCodeAt(at - 2) === other.charCodeAt(to - 1);
      const cost = Math.min(
        (last[to] ?? 0) + 1,
        (row[to - 1] ?? 0) + 1,
        (last[to - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[to - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
      row.push(cost);
      least = Math.min(least, cost);
    }
    // A swap reaches over one row.
    if (least > most && leastOfLast > most) return most + 1;
    [beforeLast, last, leastOfLast] = [last, row, least];
  }
  return last[other.length] ?? most + 1;
}
