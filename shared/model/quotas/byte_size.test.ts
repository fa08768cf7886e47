import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatSize, parseSize } from './byte_size.ts';

test.each([
  ['1000', 1000],
  ['500MB', 500_000_000],
  ['500 mb', 500_000_000],
  ['64KiB', 65_536],
  ['2 GiB', 2_147_483_648],
  ['3kB', 3000],
  ['7 bytes', 7],
])('%s is %i bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

test.each(['', 'MB', '1.5GB', '-1', '5 TB', '1e3', '0x10', '5  MB', ' 5MB', '5MB ', '1234567890123456'])(
  '%j is no size',
  (text) => {
    expect(parseSize(text)).toBeNull();
  },
);

test.each([
  [500_000_000, '500 MB'],
  [512_000_000_000, '512 GB'],
  [65_536, '64 KiB'],
  [1001, '1001 bytes'],
  [0, '0 bytes'],
])('%i is written as %s', (bytes, text) => {
  expect(formatSize(bytes)).toBe(text);
});

test('what is written is read as the same size', () => {
  fc.assert(
    fc.property(fc.nat(), fc.constantFrom(1, 1000, 1024, 1_000_000, 1_048_576), (count, unit) => {
      expect(parseSize(formatSize(count * unit))).toBe(count * unit);
    }),
  );
});
