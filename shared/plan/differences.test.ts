import { describe, expect, test } from 'vitest';
import { differences } from './differences.ts';

describe('differences', () => {
  test('equal values have none, for any order of their keys', () => {
    expect(differences({ a: 1, b: [1, { c: 'x' }] }, { b: [1, { c: 'x' }], a: 1 })).toEqual([]);
  });

  test.each([
    [{ a: 1 }, { a: 2 }, [{ place: 'a', from: 1, to: 2 }]],
    [{ a: [1, 2] }, { a: [1] }, [{ place: 'a[1]', from: 2, to: undefined }]],
    [{ a: { b: 1 } }, { a: {} }, [{ place: 'a.b', from: 1, to: undefined }]],
    [{}, { a: null }, [{ place: 'a', from: undefined, to: null }]],
    [{ a: [] }, { a: {} }, [{ place: 'a', from: [], to: {} }]],
    [1, '1', [{ place: '', from: 1, to: '1' }]],
  ])('%j and %j', (from, to, expected) => {
    expect(differences(from, to)).toEqual(expected);
  });
});
