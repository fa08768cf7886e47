/** What a cost may grow with. */
export type Bound = 'constant' | 'log n' | 'n' | 'n log n';

export interface Step {
  readonly size: number;
  readonly cost: number;
}

/** One cost at growing amounts. */
export interface Cost {
  readonly name: string;
  readonly unit: string;
  readonly bound: Bound;
  readonly steps: readonly Step[];
}

export interface Grown {
  readonly title: string;
  /** What grows. */
  readonly amount: string;
  readonly costs: readonly Cost[];
}

const GROWTH: { readonly [B in Bound]: (size: number) => number } = {
  constant: () => 1,
  'log n': (size) => Math.log2(size + 1),
  n: (size) => size,
  'n log n': (size) => size * Math.log2(size + 1),
};

/** Other work on the machine, caches that no longer hold everything. */
const TOLERANCE = 3;

/**
 * Whether the cost of the largest amount is more than the bound makes of the cost of an earlier one. The first step is left out if
 * there are three: at a small amount the fixed cost of a call hides the growth, and a cost of nearly nothing has no ratio.
 */
export function steeperThan(bound: Bound, steps: readonly Step[]): boolean {
  const last = steps.at(-1);
  const from = steps.length > 2 ? steps[1] : steps[0];
  if (last === undefined || from === undefined || from === last) return false;
  const allowed = (from.cost * GROWTH[bound](last.size)) / GROWTH[bound](from.size);
  return last.cost > Math.max(allowed, 1) * TOLERANCE;
}
