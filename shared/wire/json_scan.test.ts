import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonCostProblem, memberNames } from './json_scan.ts';

describe('the names of an object', () => {
  test('are those that JSON.parse finds (property)', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), fc.nat(3), (object, space) => {
        const names = memberNames(JSON.stringify(object, null, space));
        expect(new Set(names.map((name): unknown => JSON.parse(`"${name}"`)))).toEqual(new Set(Object.keys(object)));
      }),
    );
  });

  test.each(['', ' ', 'null', '"text"', '[{"a":1}]', '{"a":1', '{"a":1}}', '{"a":1} x', '{"a":1}{"b":2}', '7'])(
    'are not found in %j, which is not an object',
    (text) => {
      expect(memberNames(text)).toEqual([]);
    },
  );

  test('are found even if strings contain braces, quotes and commas', () => {
    expect(memberNames(' {"a\\"":"}{,\\"","b":[{"c":1},"d"] , "e":{"f":2}}\n')).toEqual(['a\\"', 'b', 'e']);
    expect(memberNames('{}')).toEqual([]);
  });
});

describe('JSON that is too costly to parse', () => {
  test.each([
    ['[[…', '['.repeat(1000), 'nested'],
    ['{"a":{…', '{"a":'.repeat(1000), 'nested'],
    ['many numbers', `[${'1,'.repeat(200_000)}1]`, 'values'],
    ['many members', `{${'"a":1,'.repeat(200_000)}"b":1}`, 'values'],
    ['many empty lists', `[${'[],'.repeat(200_000)}1]`, 'values'],
  ])('%s', (_name, text, problem) => {
    expect(jsonCostProblem(text)).toContain(problem);
  });

  test.each([
    ['one long string of brackets', JSON.stringify('[{,'.repeat(400_000))],
    ['128 nested lists', '['.repeat(128) + ']'.repeat(128)],
    ['90,000 numbers', `[${'1,'.repeat(90_000)}1]`],
    ['escaped quotes', JSON.stringify('"\\'.repeat(1000) + '['.repeat(1000))],
  ])('%s is not', (_name, text) => {
    expect(jsonCostProblem(text)).toBeNull();
  });
});
