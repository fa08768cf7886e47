import { expect, test } from 'vitest';
import { agoText, parseDuration, parseSessionLength, parseTime } from './relative_time.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');

test.each([
  ['10m', '2026-01-01T23:50:00.000Z'],
  ['2d', '2025-12-31T00:00:00.000Z'],
  ['2026-01-01T09:00:00Z', '2026-01-01T09:00:00.000Z'],
  ['2026-01-01T09:00:00+02:00', '2026-01-01T07:00:00.000Z'],
  ['2026-01-01', '2026-01-01T00:00:00.000Z'],
])('the time %s is %s', (text, time) => {
  expect(parseTime(text, NOW)).toEqual({ ok: true, value: time });
});

test.each(['', 'yesterday', '10', '10x', '2026-13-01', '-5m', '12'])('refuses the time %j', (text) => {
  expect(parseTime(text, NOW).ok).toBe(false);
});

test.each([
  ['90s', 90],
  ['8h', 28_800],
])('the length %s is %d seconds', (text, seconds) => {
  expect(parseDuration(text)).toEqual({ ok: true, value: seconds });
});

test.each(['0s', '8', 'h', '-1h', '1.5h'])('refuses the length %j', (text) => {
  expect(parseDuration(text).ok).toBe(false);
});

test.each([
  ['2026-01-01T23:59:58.500Z', '1s ago'],
  ['2026-01-01T22:30:00.000Z', '1h ago'],
  ['2026-01-02T00:00:05.000Z', '0s ago'],
])('%s is %s', (time, text) => {
  expect(agoText(time, NOW)).toBe(text);
});

test('a session may last 30 days, and no longer', () => {
  expect(parseSessionLength('30d')).toEqual({ ok: true, value: 2_592_000 });
  expect(parseSessionLength('31d')).toEqual({ ok: false, error: 'is "31d": a session may last 30d at most' });
});
