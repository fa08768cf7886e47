import { describe, expect, test } from 'vitest';
import {
  isExactObjectOf,
  isFiniteNumber,
  isFlag,
  isListOf,
  isObjectOf,
  isOneOf,
  isRecordOf,
  isText,
  isTextList,
  isWholeNumber,
  orMissing,
  orNull,
  parseExactFields,
  readExactFields,
  readFields,
  replyOf,
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
    Object.assign([], GOOD),
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

describe('a field that may be missing', () => {
  const checks = { name: isText, note: orMissing(isText) };

  test('is left out if it is', () => {
    expect(readFields({ name: 'a' }, checks)).toStrictEqual({ name: 'a' });
    expect(readFields({ name: 'a', note: 'b' }, checks)).toStrictEqual({ name: 'a', note: 'b' });
  });

  test('is checked if it is there', () => {
    expect(readFields({ name: 'a', note: 1 }, checks)).toBeNull();
    expect(readFields({ name: 'a', note: null }, checks)).toBeNull();
  });
});

describe('what is within a field', () => {
  const isPoint = isObjectOf({ x: isFiniteNumber });

  test('is one of some values', () => {
    expect(['a', 'b', 'c', 1, null].filter(isOneOf(['a', 1]))).toEqual(['a', 1]);
  });

  test('is an object, with or without others beside its fields', () => {
    expect([{ x: 1 }, { x: 1, y: 2 }, { x: '1' }, {}, null].filter(isPoint)).toEqual([{ x: 1 }, { x: 1, y: 2 }]);
    expect([{ x: 1 }, { x: 1, y: 2 }].filter(isExactObjectOf({ x: isFiniteNumber }))).toEqual([{ x: 1 }]);
  });

  test('is a list', () => {
    expect([[], [{ x: 1 }], [{ x: 1 }, {}], { x: 1 }].filter(isListOf(isPoint))).toEqual([[], [{ x: 1 }]]);
  });

  test('is read without what has no check', () => {
    const checks = {
      point: orMissing(isPoint),
      points: isListOf(orNull(isPoint)),
      byName: isRecordOf(isListOf(isPoint)),
    };
    const [given, read] = [{ x: 1, y: 2 }, { x: 1 }];
    expect(readFields({ point: given, points: [given, null], byName: { a: [given] } }, checks)).toStrictEqual({
      point: read,
      points: [read, null],
      byName: { a: [read] },
    });
  });

  test('has its names from the value alone, whatever they are', () => {
    const names = '{"__proto__":{"x":1},"constructor":{"x":2},"toString":{"x":3}}';
    const read = readFields(JSON.parse(`{"byName":${names}}`), { byName: isRecordOf(isPoint) });
    expect(JSON.stringify(read?.byName)).toBe(names);
    expect(read?.byName['x']).toBeUndefined();
    expect(readFields(JSON.parse('{"__proto__":{"x":1}}'), { x: isFiniteNumber })).toBeNull();
    expect(isPoint(JSON.parse('{"__proto__":{"x":1}}'))).toBe(false);
  });

  test('is an object of any fields', () => {
    const isByPath = isRecordOf(isPoint, (name) => name.startsWith('/'));
    expect([{}, { '/a': { x: 1 } }, { a: { x: 1 } }, { '/a': 1 }, [], null].filter(isByPath)).toEqual([
      {},
      { '/a': { x: 1 } },
    ]);
  });
});

test.each([
  [{ folders: {} }, 'version is missing'],
  [{ version: 2, folders: {} }, 'version is not as expected'],
  [{ version: 1, folders: {}, more: 1 }, 'more is not known'],
  [{ version: 1, folders: { '/a': ['b', 7] } }, 'folders./a.1 is not as expected'],
  [{ version: 1, folders: { a: [] } }, 'folders.a is not known'],
  [{ version: 1, folders: { '/\u001b[2J\n': 7 } }, 'folders./\\x1b[2J\\x0a is not as expected'],
  [[], 'its content is not as expected'],
])('a file says what is wrong with %j', (value, problem) => {
  const folders = isRecordOf(isTextList, (name) => name.startsWith('/'));
  expect(parseExactFields(value, { version: isOneOf([1]), folders })).toEqual({ ok: false, error: problem });
});

describe('a reply', () => {
  const reply = replyOf({ ...CHECKS, points: orMissing(isListOf(isObjectOf({ x: orNull(isFiniteNumber) }))) });

  test('is read as fields are', () => {
    expect(reply.safeParse({ ...GOOD, more: 1 })).toEqual({ success: true, data: GOOD });
  });

  test.each([
    [{ ...GOOD, pid: 'x' }, [{ path: ['pid'], message: 'not as expected' }]],
    [{ name: 'a', pid: 41 }, [{ path: ['isOn'], message: 'missing' }]],
    ['text', [{ path: [], message: 'not as expected' }]],
    [[], [{ path: [], message: 'not as expected' }]],
    [{ ...GOOD, points: [{ x: 1 }, { x: 'a' }] }, [{ path: ['points', 1, 'x'], message: 'not as expected' }]],
    [{ ...GOOD, points: [{ x: 1 }, {}] }, [{ path: ['points', 1, 'x'], message: 'missing' }]],
    [{ ...GOOD, points: {} }, [{ path: ['points'], message: 'not as expected' }]],
  ])('says where %j is wrong', (value, issues) => {
    expect(reply.safeParse(value)).toEqual({ success: false, error: { issues } });
  });
});
