import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RollingCount } from './rolling_count.ts';

const START = 1_800_000_000_000;

test('counts what happened within the span', () => {
  const count = new RollingCount(1000, 60);
  for (const second of [0, 0, 10, 30]) count.add(START + second * 1000);
  expect(count.total(START + 59_000)).toBe(4);
  expect(count.total(START + 61_000)).toBe(2);
  expect(count.total(START + 200_000)).toBe(0);
});

test('says how long it takes until there is room', () => {
  const count = new RollingCount(1000, 60);
  for (const second of [0, 0, 10, 30]) count.add(START + second * 1000);
  const now = START + 30_500;
  expect(count.waitFor(5, now)).toBe(0);
  expect(count.waitFor(4, now)).toBe(30_500);
  expect(count.waitFor(2, now)).toBe(40_500);
  expect(count.total(now + count.waitFor(2, now))).toBe(1);
});

test('a limit on the total holds for every span, whatever the order of requests and pauses', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 30_000 })), fc.integer({ min: 1, max: 5 }), (pauses, limit) => {
      const count = new RollingCount(1000, 60);
      const admitted: number[] = [];
      let now = START;
      for (const pause of pauses) {
        now += pause;
        if (count.waitFor(limit, now) > 0) continue;
        count.add(now);
        admitted.push(now);
      }
      for (const first of admitted) {
        expect(admitted.filter((at) => at >= first && at < first + 60_000).length).toBeLessThanOrEqual(limit);
      }
    }),
  );
});

test('after the wait there is room, and just before it there is none', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1 }),
      fc.integer({ min: 1, max: 5 }),
      (pauses, limit) => {
        const count = new RollingCount(1000, 60);
        let now = START;
        for (const pause of pauses) count.add((now += pause));
        const wait = count.waitFor(limit, now);
        if (wait === 0) return;
        expect(count.waitFor(limit, now + wait - 1)).toBe(1);
        expect(count.waitFor(limit, now + wait)).toBe(0);
      },
    ),
  );
});

test('a clock that was set back forgets nothing, and does not hold it for longer than the span', () => {
  const count = new RollingCount(1000, 60);
  count.add(START + 86_400_000);
  expect(count.total(START)).toBe(1);
  expect(count.waitFor(1, START)).toBe(61_000);
  expect(count.total(START + 61_000)).toBe(0);
});

test('is taken up again from its entries', () => {
  const first = new RollingCount(60_000, 1440);
  for (const minute of [0, 0, 700, 1439]) first.add(START + minute * 60_000);
  const now = START + 1439 * 60_000;
  const second = new RollingCount(60_000, 1440, first.entries(now));
  expect(second.total(now)).toBe(4);
  expect(second.total(now + 2 * 60_000)).toBe(2);
});
