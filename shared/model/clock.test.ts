import { describe, expect, test } from 'vitest';
import { leftUntil, momentAt, readClocks } from './clock.ts';

const clocksAt = (wall: number, monotonic: number) => ({ clock: { now: () => wall }, monotonicNow: () => monotonic });

describe('a moment by two clocks', () => {
  const end = momentAt(1_060_000, readClocks(clocksAt(1_000_000, 500)));

  test.each([
    ['both run', 1_010_000, 10_500, 50_000],
    ['the machine slept', 1_050_000, 600, 10_000],
    ["the machine's clock was set back", 900_000, 50_500, 10_000],
    ['it has come by the one that can be set', 1_060_000, 600, 0],
    ['it has come by the one that nobody sets', 900_000, 60_501, -1],
  ])('%s', (_, wall, monotonic, left) => {
    expect(leftUntil(end, clocksAt(wall, monotonic))).toBe(left);
  });

  test('never comes if it is at no time', () => {
    const never = momentAt(Number.POSITIVE_INFINITY, readClocks(clocksAt(1_000, 1)));
    expect(leftUntil(never, clocksAt(2_000, 2))).toBe(Number.POSITIVE_INFINITY);
  });

  test('without a clock that nobody sets, the other one is read for both', () => {
    const clocks = { clock: { now: () => 7 } };
    expect(readClocks(clocks)).toEqual({ wall: 7, monotonic: 7 });
    expect(leftUntil(momentAt(10, readClocks(clocks)), clocks)).toBe(3);
  });
});
