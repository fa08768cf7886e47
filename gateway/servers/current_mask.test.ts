import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { CurrentMask } from './current_mask.ts';

const VALUE = 'the-value-of-a-header';
const [FIRST, SECOND, THIRD] = ['the-first-access-token', 'the-second-access-token', 'the-third-access-token'];
const MINUTE = 60_000;

/** The masked ones of three tokens. */
const listMasked = (mask: CurrentMask) =>
  [FIRST, SECOND, THIRD].filter((token) => !mask.now.maskText(`Bearer ${token}`).includes(token));

test('masks a renewed token, and the old one until some time after its expiry', () => {
  const mask = new CurrentMask([VALUE], { text: FIRST, expiresAt: 60 * MINUTE });
  expect(listMasked(mask)).toEqual([FIRST]);
  mask.add({ text: SECOND, expiresAt: 120 * MINUTE }, 59 * MINUTE);
  expect(listMasked(mask)).toEqual([FIRST, SECOND]);
  mask.add({ text: THIRD, expiresAt: 180 * MINUTE }, 119 * MINUTE);
  expect(listMasked(mask)).toEqual([SECOND, THIRD]);
  expect(mask.now.maskText(VALUE)).not.toContain(VALUE);
});

test('keeps masking a token without a known expiry', () => {
  const mask = new CurrentMask([], { text: FIRST, expiresAt: null });
  mask.add({ text: SECOND, expiresAt: null }, 10_000 * MINUTE);
  expect(listMasked(mask)).toEqual([FIRST, SECOND]);
});

test('a token that is issued repeatedly does not displace others', () => {
  const mask = new CurrentMask([], { text: FIRST, expiresAt: null });
  for (let time = 0; time < 100; time += 1) mask.add({ text: SECOND, expiresAt: null }, time);
  expect(listMasked(mask)).toEqual([FIRST, SECOND]);
});

test('never prints its values', () => {
  const mask = new CurrentMask([VALUE], { text: FIRST, expiresAt: null });
  expect(JSON.stringify({ mask }) + inspect(mask, { depth: 9 })).not.toMatch(/the-(?:value|first)/);
});
