import { expect, test } from 'vitest';
import { CallRate } from './call_rate.ts';

const rateAt = (perMinute: number) => {
  const clock = { ms: 1_000_000 };
  return { clock, rate: new CallRate(() => clock.ms, perMinute) };
};
const admitted = (rate: CallRate, calls: number, enterprise = 'ent_1') =>
  Array.from({ length: calls }, () => rate.take('people', enterprise)).filter(({ isAdmitted }) => isAdmitted).length;

test('lets as many calls through as a minute has, and then as many as come back', () => {
  const { clock, rate } = rateAt(60);
  expect(admitted(rate, 100)).toBe(60);
  clock.ms += 10_000;
  expect(admitted(rate, 100)).toBe(10);
  clock.ms += 3_600_000;
  expect(admitted(rate, 100)).toBe(60);
});

test('counts enterprises, and people and sidecars, each for themselves', () => {
  const { rate } = rateAt(60);
  expect(admitted(rate, 100)).toBe(60);
  expect(admitted(rate, 100, 'ent_2')).toBe(60);
  expect(rate.take('sidecars', 'ent_1')).toEqual({ isAdmitted: true });
});

test('says when to try again, and which refusal is the first of a minute', () => {
  const { clock, rate } = rateAt(60);
  admitted(rate, 60);
  expect(rate.take('people', 'ent_1')).toEqual({ isAdmitted: false, retryAfterSeconds: 1, isFirst: true });
  expect(rate.take('people', 'ent_1')).toMatchObject({ isFirst: false });
  for (let second = 0; second < 60; second += 1) {
    clock.ms += 1_000;
    admitted(rate, 2);
  }
  expect(rate.take('people', 'ent_1')).toMatchObject({ isAdmitted: false });
});

test('a clock that goes back gives no calls', () => {
  const { clock, rate } = rateAt(60);
  admitted(rate, 60);
  clock.ms -= 600_000;
  expect(admitted(rate, 10)).toBe(0);
});
