/**
 * The candidate that a mistyped word most likely means; null if none is near. Case, `-` and `_` are ignored, and a word is
 * near a candidate if one is a prefix of the other. If none is near, a candidate such as `github-api` counts as its first part.
 */
export function nearMatch(word: string, candidates: readonly string[]): string | null {
  return nearestBy(plainWord, word, candidates) ?? nearestBy(firstPart, word, candidates);
}

function nearestBy(partOf: (candidate: string) => string, word: string, candidates: readonly string[]): string | null {
  const plain = plainWord(word);
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(plain.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = wordDistance(plain, partOf(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** `: did you mean "x"?`, or the empty text. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearMatch(word, candidates);
  return near === null ? '' : `: did you mean "${near}"?`;
}

function plainWord(word: string): string {
  return word.slice(0, 64).toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** A shorter part is near too many words. */
const LEAST_PART = 4;

function firstPart(candidate: string): string {
  const [first = ''] = candidate.split('-', 1);
  return plainWord(first.length < LEAST_PART ? candidate : first);
}

function wordDistance(word: string, candidate: string): number {
  const isPart = word.length >= 3 && (candidate.startsWith(word) || word.startsWith(candidate));
  return isPart ? Math.min(1, editDistance(word, candidate)) : editDistance(word, candidate);
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const change = left[i - 1] === right[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      const swap = swapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + change, swap));
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}
