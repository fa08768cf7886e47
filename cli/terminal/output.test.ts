import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { formatRows, createPainter } from './output.ts';

const columns = [
  { title: 'A', cell: (row: readonly string[]) => row[0] ?? '' },
  { title: 'B', cell: (row: readonly string[]) => row[1] ?? '' },
];
const plain = (_style: string, text: string): string => text;

describe('formatRows', () => {
  test('aligns a table and adds headings', () => {
    const text = formatRows(
      [
        ['long cell', 'x'],
        ['s', 'y'],
      ],
      columns,
      { table: true, paint: plain, empty: '' },
    );
    expect(text).toBe('A          B\nlong cell  x\ns          y\n');
  });

  test('separates cells with one tab for a program and escapes tabs inside cells', () => {
    const text = formatRows([['a\tb\nc', 'x']], columns, { table: false, paint: plain, empty: 'none' });
    expect(text).toBe('a\\x09b\\x0ac\tx\n');
  });

  test('without rows prints a sentence for a person and nothing for a program', () => {
    expect(formatRows([], columns, { table: true, paint: plain, empty: 'none' })).toBe('none\n');
    expect(formatRows([], columns, { table: false, paint: plain, empty: 'none' })).toBe('');
  });
});

test('printable escapes control characters and keeps all others', () => {
  expect(toPrintable('\u001b]0;x\u0007 \u202e \u2028 é 漢 ~')).toBe('\\x1b]0;x\\x07 \\u202e \\u2028 é 漢 ~');
});

const isColoured = (isTTY: boolean, env: Record<string, string>): boolean =>
  createPainter(Object.assign(new PassThrough(), { isTTY }), env)('red', 'x') !== 'x';

describe('colour', () => {
  test.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
    [false, { FORCE_COLOR: '1' }, true],
    [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  ])('terminal %s with %j: %s', (isTTY, env, wanted) => {
    expect(isColoured(isTTY, env)).toBe(wanted);
  });
});
