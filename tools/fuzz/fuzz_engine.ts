import { mutated, SeededRandom } from './fuzz_random.ts';

/** A part of our code that reads untrusted input, and the property that must hold for every input. */
export interface FuzzTarget {
  readonly name: string;
  /** Initial inputs, as latin1 text. */
  readonly seeds: readonly [string, ...string[]];
  /** Words that are likely to matter. */
  readonly words: readonly [string, ...string[]];
  /** What is wrong with the handling of the input; null if nothing is. An exception is a failure too. */
  check(input: string): string | null;
}

export interface FuzzOptions {
  readonly seed: number;
  /** Whether to continue, called between batches. */
  goOn(runs: number): boolean;
  /** The blocks of code that ran since the last call; without it, inputs are not kept for coverage. */
  blocksRun?: () => ReadonlySet<string>;
}

export interface FuzzResult {
  readonly runs: number;
  /** Inputs that were kept because they reached new code. */
  readonly kept: number;
  /** Blocks of code that the seeds reach. */
  readonly seedBlocks: number;
  /** Blocks of code that were reached in total. */
  readonly blocks: number;
  readonly failure: { readonly input: string; readonly problem: string } | null;
}

const BATCH = 400;

/** Runs a target on its seeds and on mutated inputs until one fails or the time is up. */
export function fuzz(target: FuzzTarget, options: FuzzOptions): FuzzResult {
  const run = new FuzzRun(target, options);
  let failing = run.try(target.seeds);
  run.reached();
  const seedBlocks = run.blocks;
  while (failing === null && options.goOn(run.runs)) failing = run.batch();
  const { runs, kept, blocks } = run;
  if (failing === null) return { runs, kept, seedBlocks, blocks, failure: null };
  const input = minimised(target, failing);
  return {
    runs,
    kept,
    seedBlocks,
    blocks,
    failure: { input, problem: problemOf(target, input) ?? 'fails now and then' },
  };
}

class FuzzRun {
  runs = 0;
  readonly #target: FuzzTarget;
  readonly #options: FuzzOptions;
  readonly #random: SeededRandom;
  readonly #corpus: [string, ...string[]];
  readonly #known = new Set<string>();

  constructor(target: FuzzTarget, options: FuzzOptions) {
    this.#target = target;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#corpus = [...target.seeds];
  }

  get kept(): number {
    return this.#corpus.length - this.#target.seeds.length;
  }

  get blocks(): number {
    return this.#known.size;
  }

  /** Mutates inputs and tries them; returns the failing one. */
  batch(): string | null {
    const random = this.#random;
    const inputs = Array.from({ length: BATCH }, () =>
      mutated(random.pick(this.#corpus), random, this.#target.words, random.pick(this.#corpus)),
    );
    const failing = this.try(inputs);
    const reached = this.reached();
    if (failing === null && reached.size > 0) this.#keep(inputs, reached);
    return failing;
  }

  try(inputs: readonly string[]): string | null {
    for (const input of inputs) {
      this.runs += 1;
      if (problemOf(this.#target, input) !== null) return input;
    }
    return null;
  }

  /** The blocks that ran for the first time since the last call. */
  reached(): ReadonlySet<string> {
    const ran = this.#options.blocksRun?.() ?? NOTHING;
    const reached = new Set([...ran].filter((block) => !this.#known.has(block)));
    for (const block of reached) this.#known.add(block);
    return reached;
  }

  /** Keeps the inputs that reach one of the new blocks, found by bisecting. */
  #keep(inputs: readonly string[], blocks: ReadonlySet<string>): void {
    this.try(inputs);
    const ran = this.#options.blocksRun?.() ?? NOTHING;
    if (![...blocks].some((block) => ran.has(block))) return;
    const [only] = inputs;
    if (inputs.length === 1 && only !== undefined) {
      this.#corpus.push(only);
      return;
    }
    const middle = Math.ceil(inputs.length / 2);
    this.#keep(inputs.slice(0, middle), blocks);
    this.#keep(inputs.slice(middle), blocks);
  }
}

const NOTHING: ReadonlySet<string> = new Set();

export function problemOf(target: FuzzTarget, input: string): string | null {
  try {
    return target.check(input);
  } catch (error) {
    return `threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}

/** The smallest input that still fails, made by removing parts. */
function minimised(target: FuzzTarget, input: string): string {
  let smallest = input;
  for (let size = Math.ceil(input.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length;) {
      const shorter = smallest.slice(0, at) + smallest.slice(at + size);
      if (problemOf(target, shorter) === null) at += size;
      else smallest = shorter;
    }
  }
  return smallest;
}
