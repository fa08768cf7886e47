import { expect, test } from 'vitest';
import { backoffMs } from './backoff.ts';

const afterMs = (failures: number) => backoffMs(failures, { firstMs: 500, mostMs: 60_000 });

test('waits twice as long after each failure, up to a minute', () => {
  expect([0, 1, 2, 3, 4].map(afterMs)).toEqual([0, 500, 1_000, 2_000, 4_000]);
  expect([8, 9, 100, 5_000].map(afterMs)).toEqual([60_000, 60_000, 60_000, 60_000]);
});
