import { describe, expect, it } from 'vitest';
import { fuzz } from './fuzz_engine.ts';
import type { FuzzTarget } from './fuzz_engine.ts';
import { piecesOf } from './fuzz_random.ts';
import { FUZZ_TARGETS } from './fuzz_targets.ts';

const SEED = 20260101;
const RUNS = 4000;
const forRuns = (most: number) => (runs: number) => runs < most;

describe('a short run of the fuzzer finds no bug in', () => {
  it.each(FUZZ_TARGETS.map((target) => ({ name: target.name, target })))('$name', ({ target }) => {
    const result = fuzz(target, { seed: SEED, goOn: forRuns(RUNS) });
    expect(result.failure).toBeNull();
    expect(result.runs).toBeGreaterThanOrEqual(RUNS);
  });
});

function breaksAtColon(input: string): null {
  if (input.includes(':')) throw new Error('it breaks');
  return null;
}

describe('the fuzzer', () => {
  const broken: FuzzTarget = {
    name: 'a planted bug',
    seeds: ['a plain input'],
    words: ['\r\n', ':'],
    check: (input) => (/\r\n[^]*:\r\n/.test(input) ? 'the bug' : null),
  };

  it('finds a bug and returns the smallest input that shows it', () => {
    const { failure } = fuzz(broken, { seed: SEED, goOn: forRuns(100_000) });
    expect(failure).toEqual({ input: '\r\n:\r\n', problem: 'the bug' });
  });

  it('counts an exception as a bug', () => {
    const thrower: FuzzTarget = { ...broken, check: breaksAtColon };
    expect(fuzz(thrower, { seed: SEED, goOn: forRuns(10_000) }).failure?.input).toBe(':');
  });

  it('keeps only the inputs that reach new code', () => {
    const reached = new Set<string>();
    const check = (input: string): string | null => {
      if (input.includes(':')) reached.add('colon');
      return null;
    };
    const blocksRun = (): ReadonlySet<string> => {
      const ran = new Set(reached);
      reached.clear();
      return ran;
    };
    const result = fuzz({ ...broken, check }, { seed: SEED, goOn: forRuns(20_000), blocksRun });
    expect(result).toMatchObject({ blocks: 1, failure: null });
    expect(result.kept).toBeGreaterThan(0);
    expect(result.kept).toBeLessThan(400);
  });

  it('repeats a run from its seed', () => {
    const seen: string[][] = [[], []];
    for (const inputs of seen) {
      const check = (input: string): null => (inputs.push(input), null);
      fuzz({ ...broken, check }, { seed: SEED, goOn: forRuns(500) });
    }
    expect(seen[0]).toEqual(seen[1]);
  });

  it('cuts bytes into pieces that add up to the whole', () => {
    const bytes = Uint8Array.from({ length: 100 }, (_, at) => at);
    expect(piecesOf(bytes, 7, 9).flatMap((piece) => [...piece])).toEqual([...bytes]);
  });
});
