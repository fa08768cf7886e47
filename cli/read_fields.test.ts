import { describe, expect, test } from 'vitest';
import {
  isFiniteNumber,
  isFlag,
  isText,
  isTextList,
  isWholeNumber,
  orNull,
  readExactFields,
  readFields,
} from './read_fields.ts';

const CHECKS = { name: isText, pid: orNull(isWholeNumber), isOn: isFlag };
const GOOD = { name: 'a', pid: 41, isOn: false };

describe('the fields of an object', () => {
  test('are read, without those that have no check', () => {
    expect(readFields({ ...GOOD, more: 1 }, CHECKS)).toEqual(GOOD);
    expect(readFields({ ...GOOD, pid: null }, CHECKS)).toEqual({ ...GOOD, pid: null });
  });

  test('may have to be exactly the checked ones', () => {
    expect(readExactFields(GOOD, CHECKS)).toEqual(GOOD);
    expect(readExactFields({ ...GOOD, more: 1 }, CHECKS)).toBeNull();
    expect(readExactFields({ ...GOOD, toString: 1 }, CHECKS)).toBeNull();
  });

  test.each([
    null,
    undefined,
    'text',
    7,
    [],
    {},
    { ...GOOD, name: 1 },
    { ...GOOD, pid: 1.5 },
    { ...GOOD, isOn: 0 },
    { name: 'a', pid: 41 },
    { name: 'a', isOn: true },
    Object.create(GOOD),
  ])('are refused: %j', (value) => {
    expect(readFields(value, CHECKS)).toBeNull();
    expect(readExactFields(value, CHECKS)).toBeNull();
  });
});

test('numbers are finite, and lists have only texts', () => {
  expect([1, -0.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null].filter(isFiniteNumber)).toEqual([1, -0.5]);
  expect([1, 2 ** 53, 0.5, '1', null].filter(isWholeNumber)).toEqual([1]);
  expect([[], ['a'], ['a', 1], 'a', null].filter(isTextList)).toEqual([[], ['a']]);
});
