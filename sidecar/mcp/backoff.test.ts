import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

test('waits twice as long after each failure, up to a minute', () => {
  expect([0, 1, 2, 3, 4].map(backoffMs)).toEqual([0, 500, 1_000, 2_000, 4_000]);
  expect([8, 9, 100, 5_000].map(backoffMs)).toEqual([60_000, 60_000, 60_000, 60_000]);
});
