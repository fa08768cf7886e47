import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { SecretMask } from './secret_mask.ts';

const SECRET = 'S3CR3T-pässword';
const mask = new SecretMask([SECRET]);

test('masks a secret in every string and key of a value, in all its spellings', () => {
  const value = {
    a: [`x${SECRET}y`, encodeURIComponent(SECRET), Buffer.from(SECRET).toString('hex')],
    [SECRET]: { deep: JSON.stringify({ s: SECRET }) },
  };
  const masked = JSON.stringify(mask.maskValue(value));
  for (const trace of [SECRET, encodeURIComponent(SECRET), Buffer.from(SECRET).toString('hex')]) {
    expect(masked).not.toContain(trace);
  }
  expect(masked).toContain('x****************y');
});

test('returns a value without secrets unchanged', () => {
  const value = { text: 'grüße', list: [1, null, { deep: true }] };
  expect(mask.maskValue(value)).toBe(value);
  expect(new SecretMask([]).maskValue(value)).toBe(value);
  expect(mask.maskText('grüße')).toBe('grüße');
});

test('ignores values under eight bytes, which would mask ordinary words', () => {
  expect(new SecretMask(['short']).maskText('a short text')).toBe('a short text');
});

test('masks a number equal to a secret of digits, and no other number', () => {
  const digits = new SecretMask(['482915736104']);
  const value = { pin: 482_915_736_104, count: 12, list: [482_915_736_104.5] };
  expect(JSON.stringify(digits.maskValue(value))).not.toContain('482915736104');
  expect(digits.maskValue({ count: 12 })).toEqual({ count: 12 });
});

test('never prints its values', () => {
  expect(JSON.stringify({ mask }) + inspect(mask, { depth: 9 })).not.toContain('S3CR3T');
});
