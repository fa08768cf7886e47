import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from './canonical_json.ts';

describe('canonical JSON', () => {
  test('sorts keys by UTF-16 code unit, at every depth, and writes no spaces', () => {
    expect(canonicalJson({ b: [1, { z: null, a: true }], a: 'x', '\u20ac': 1, '\ud83d\ude00': 2, '\ufb33': 3 })).toBe(
      '{"a":"x","b":[1,{"a":true,"z":null}],"\u20ac":1,"\ud83d\ude00":2,"\ufb33":3}',
    );
  });

  test('writes numbers and escapes as RFC 8785 does', () => {
    expect(canonicalJson([Number('333333333.33333329'), 1e30, 4.5, 2e-3, 1e-27, -0])).toBe(
      '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]',
    );
    expect(canonicalJson('\u20ac$\u000f\nA\'B"\\\u2028/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\u2028/"');
  });

  test('equals JSON, for any order of the keys', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reverseKeys(value))).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  test.each([[Number.NaN], [Number.POSITIVE_INFINITY], ['\ud800'], [1n], [() => 1], [[undefined]]])(
    'refuses %s',
    (value) => {
      expect(() => canonicalJson(value)).toThrow('canonical JSON cannot contain');
    },
  );
});

function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => reverseKeys(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, reverseKeys(member)]),
  );
}
