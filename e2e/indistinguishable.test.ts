import { expect, test } from 'vitest';
import { searchDifference } from '../tools/indistinguishable.ts';
import { countOf } from './support/full_counts.ts';

const REPLIES = countOf(100_000, 20_000);

/** Design section 13, invariant 9. A longer run: `node tools/indistinguishable.ts --cases 10000000`. */
test('invariant 9: none of many random replies distinguishes two credentials, unless it contains a whole one', () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const { compared, masked, found } = searchDifference(REPLIES, seed);
  expect({ seed, compared, found }).toEqual({ seed, compared: REPLIES, found: null });
  process.stdout.write(
    `indistinguishability: ${compared} replies compared, ${masked} of them held a credential, seed ${seed}\n`,
  );
}, 900_000);
