import { describe, expect, test } from 'vitest';
import { pathReadings, segmentKey, withoutSuffixes } from './path_readings.ts';

const read = (path: string): string[] | null =>
  pathReadings(path)?.map(({ segments }) => `/${segments.join('/')}`) ?? null;

describe('the readings of a path', () => {
  test.each([
    ['/v1/Refunds', '/v1/refunds'],
    ['/v1/%52efunds', '/v1/refunds'],
    ['/v1/%2552efunds', '/v1/refunds'],
    ['/v1/refunds%20', '/v1/refunds'],
    ['/v1/refunds...', '/v1/refunds'],
    ['/v1/refunds()', '/v1/refunds'],
    ['/v1//refunds/', '/v1/refunds'],
    ['/v1;a=b/refunds', '/v1/refunds'],
    ['/v1/;x/refunds', '/v1/refunds'],
    ['/v1/;x/refunds', '/v1/;x/refunds'],
    ['/v1%252Frefunds', '/v1/refunds'],
    ['/v1%255crefunds', '/v1/refunds'],
    ['/x/%252e%252e/v1/refunds', '/v1/refunds'],
    ['/v1/../refunds', '/refunds'],
    ['/v1/../refunds', '/v1/../refunds'],
    ['/v1/refunds%3Fa', '/v1/refunds'],
    ['/v1/refunds%23a', '/v1/refunds'],
    ['/index.php/v1/refunds', '/v1/refunds'],
    ['/index.php/x/../v1/refunds', '/v1/refunds'],
    ['/a.php/index.php/v1/refunds', '/v1/refunds'],
    ['/v1/refunds/%20', '/v1/refunds'],
    ['/v1/refunds/.json', '/v1/refunds'],
    ['/v1/%C5%BFtatu%C5%BF', '/v1/status'],
    ['/v1/%EF%BD%92efunds', '/v1/refunds'],
    ['/v1/r%C3%A9funds', '/v1/refunds'],
    ['/%40me', '/@me'],
    ['/-/x', '/-/x'],
  ])('%s may be read as %s', (path, reading) => {
    expect(read(path)).toContain(reading);
  });

  test.each([
    '/v1/refunds%00',
    '/v1/refunds%0A',
    '/v1/%250a',
    '/v1/%u0072efunds',
    '/v1/%c1%b2efunds',
    '/%2525252525252Fx',
    '/a%252F..%252Fb',
    `${'/a/..'.repeat(40)}/v1/refunds`,
  ])('%s cannot be read with certainty', (path) => {
    expect(read(path)).toBeNull();
  });

  test('a plain path has one', () => {
    expect(read('/v1/items/7')).toEqual(['/v1/items/7']);
  });

  test('a path of maximum length costs no more than one pass over each of its readings', () => {
    for (const path of [
      `/${'a.'.repeat(30_000)}`,
      '/a'.repeat(30_000),
      `/${'%25'.repeat(20_000)}`,
      `/${'.'.repeat(60_000)}`,
    ]) {
      expect((pathReadings(path) ?? []).length).toBeLessThan(9);
    }
  });
});

test('a key has no case, accents, escapes or trailing characters', () => {
  expect(['BatchDelete', 'x%2Ey', 'É', '%2560', '%E2%82%AC', 'a%FF'].map(segmentKey)).toEqual([
    'batchdelete',
    'x.y',
    'e',
    '`',
    '€',
    'a\u00ff'.normalize('NFKD').replaceAll(/\p{M}/gu, ''),
  ]);
});

test('a suffix begins at any dot up to the limit, never at the first character', () => {
  expect(withoutSuffixes('chat.delete.json', 2)).toEqual(['chat', 'chat.delete']);
  expect(withoutSuffixes('chat.delete.json', 1)).toEqual(['chat']);
  expect(withoutSuffixes('a .json', 1)).toEqual(['a']);
  expect([withoutSuffixes('.well-known', 3), withoutSuffixes('plain', 3)]).toEqual([[], []]);
});
