import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonRule } from '../model/connector.ts';
import { areDisjoint, satisfies } from './json_rules.ts';

const bound = fc.option(fc.integer({ min: 0, max: 6 }), { nil: undefined });
const range = fc.tuple(bound, bound).map(([atLeast, atMost]) => ({
  pointer: '/a',
  ...(atLeast !== undefined && { atLeast }),
  ...(atMost !== undefined && { atMost }),
}));
const listed = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constantFrom('x', 'y', true)), { minLength: 1, maxLength: 3 })
  .map((equals): JsonRule => ({ pointer: '/a', equals }));
const rule = fc.oneof(range, listed);
const VALUES = [-1, ...Array.from({ length: 15 }, (_each, at) => at / 2), 'x', 'y', true, false];

test('rules are disjoint exactly if no value satisfies both', () => {
  fc.assert(
    fc.property(rule, rule, (one, other) => {
      const common = VALUES.some((value) => satisfies(one, value) && satisfies(other, value));
      expect(areDisjoint([one], [other])).toBe(!common);
    }),
  );
});

test('rules for different places have bodies in common', () => {
  expect(areDisjoint([{ pointer: '/a', equals: [1] }], [{ pointer: '/b', equals: [2] }])).toBe(false);
});
