/** The candidate that a mistyped word most likely meant, or null when none is near. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const scored = candidates.map((candidate) => ({ candidate, edits: editDistance(word, candidate) }));
  const best = scored.toSorted((a, b) => a.edits - b.edits)[0];
  if (best === undefined) return null;
  return best.edits <= Math.max(1, Math.floor(best.candidate.length / 3)) ? best.candidate : null;
}

/** How many insertions, deletions, replacements and swaps of neighbours make one word the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const cost = from[i - 1] === to[j - 1] ? 0 : 1;
      let fewest = Math.min(editsAt(row, j - 1) + 1, editsAt(last, j) + 1, editsAt(last, j - 1) + cost);
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) fewest = Math.min(fewest, editsAt(beforeLast, j - 2) + 1);
      row.push(fewest);
    }
    beforeLast = last;
    last = row;
  }
  return editsAt(last, to.length);
}

function editsAt(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
