import { mutate, SeededRandom } from './fuzz_random.ts';

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

interface FuzzOptions {
  readonly seed: number;
  /** Whether to continue, called between batches. */
  goOn(runs: number): boolean;
  /** The blocks of code that ran since the last call; without it, inputs are not kept for coverage. */
  blocksRun?: () => ReadonlySet<string>;
}

interface FuzzResult {
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
/** A reading of the coverage takes as long as this many runs. Readings get at most half of the time. */
const RUNS_PER_READING = 250;
/** Enough to find one input of a batch. */
const READINGS_TO_BEGIN = 10;

/** Runs a target on its seeds and on mutated inputs until one fails or the time is up. */
export function fuzz(target: FuzzTarget, options: FuzzOptions): FuzzResult {
  const run = new FuzzRun(target, options);
  let failing = run.trySeeds();
  const seedBlocks = run.blocks;
  while (failing === null && options.goOn(run.runs)) failing = run.batch();
  const { runs, kept, blocks } = run;
  if (failing === null) return { runs, kept, seedBlocks, blocks, failure: null };
  const input = minimise(target, failing);
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
  readonly #seen = new Set<string>();
  /** The blocks that inputs of the corpus reach. */
  readonly #known = new Set<string>();
  #readings = 0;

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
    return this.#seen.size;
  }

  /** Tries the seeds, whose blocks are then known. */
  trySeeds(): string | null {
    const failing = this.try(this.#target.seeds);
    for (const block of this.takeReached()) this.#known.add(block);
    return failing;
  }

  /** Mutates inputs and tries them; returns the failing one. */
  batch(): string | null {
    const random = this.#random;
    const inputs = Array.from({ length: BATCH }, () =>
      mutate(random.pick(this.#corpus), random, this.#target.words, random.pick(this.#corpus)),
    );
    const failing = this.try(inputs);
    const reached = this.takeReached();
    if (failing === null && reached.size > 0 && this.#readingsLeft() >= READINGS_TO_BEGIN) this.#keep(inputs);
    return failing;
  }

  try(inputs: readonly string[]): string | null {
    for (const input of inputs) {
      this.runs += 1;
      if (problemOf(this.#target, input) !== null) return input;
    }
    return null;
  }

  /** The blocks that ran since the last call and that no input of the corpus reaches. */
  takeReached(): ReadonlySet<string> {
    this.#readings += 1;
    const ran = this.#options.blocksRun?.() ?? NOTHING;
    for (const block of ran) this.#seen.add(block);
    return new Set([...ran].filter((block) => !this.#known.has(block)));
  }

  #readingsLeft(): number {
    return this.runs / RUNS_PER_READING - this.#readings;
  }

  /** Finds the inputs that reach new blocks by bisecting, and keeps them. */
  #keep(inputs: readonly string[]): void {
    if (this.#readingsLeft() <= 0) return;
    this.try(inputs);
    const reached = this.takeReached();
    if (reached.size === 0) return;
    const [only] = inputs;
    if (inputs.length === 1 && only !== undefined) {
      this.#corpus.push(only);
      for (const block of reached) this.#known.add(block);
      return;
    }
    const middle = Math.ceil(inputs.length / 2);
    this.#keep(inputs.slice(0, middle));
    this.#keep(inputs.slice(middle));
  }
}

const NOTHING: ReadonlySet<string> = new Set();

function problemOf(target: FuzzTarget, input: string): string | null {
  try {
    return target.check(input);
  } catch (error) {
    return `threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}

/** The smallest input that still fails, made by removing parts. */
function minimise(target: FuzzTarget, input: string): string {
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
