import { expect, test } from 'vitest';
import { SeenOutcomes } from './seen_outcomes.ts';

test('a failure counts from the first one after a success', () => {
  const seen = new SeenOutcomes();
  expect(seen.of('mail')).toBeNull();
  seen.note('mail', 'status 500', 10);
  seen.note('mail', 'status 503', 20);
  expect(seen.of('mail')).toEqual({ problem: 'status 503', failingSinceMs: 10, workedAtMs: null });
  seen.note('mail', null, 30);
  expect(seen.of('mail')).toEqual({ problem: null, failingSinceMs: null, workedAtMs: 30 });
  seen.note('mail', 'status 500', 40);
  expect(seen.of('mail')).toEqual({ problem: 'status 500', failingSinceMs: 40, workedAtMs: 30 });
});

test('only the names that were used last are kept', () => {
  const seen = new SeenOutcomes();
  seen.note('first', null, 0);
  for (let n = 0; n < 5_000; n += 1) seen.note(`other ${n}`, null, n);
  expect([seen.of('first'), seen.of('other 0')]).toMatchObject([null, { workedAtMs: 0 }]);
});
