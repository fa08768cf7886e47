import { describe, expect, test } from 'vitest';
import { TerminalFilter } from './terminal_filter.ts';

const END = '\u001b[0m';

function filterPieces(...pieces: readonly string[]): string {
  const filter = new TerminalFilter();
  return pieces.map((piece) => filter.push(Buffer.from(piece))).join('') + filter.end();
}

describe('what a step prints on a terminal', () => {
  test('keeps text, line ends, tabs and colours, and ends the last colour', () => {
    const text = 'grün \u001b[1;31mred\u001b[0m\tdone\r\n';
    expect(filterPieces(text)).toBe(text + END);
  });

  test.each([
    ['a window title', '\u001b]0;owned\u0007', '\\x1b]0;owned\\x07'],
    ['the clipboard', '\u001b]52;c;aGk=\u001b\\', '\\x1b]52;c;aGk=\\x1b\\'],
    ['a cleared screen', '\u001b[2J', '\\x1b[2J'],
    ['a moved cursor', '\u001b[1A', '\\x1b[1A'],
    ['a device report', '\u001b[6n', '\\x1b[6n'],
    ['an 8-bit control', '\u009b2J', '\\x9b2J'],
    ['a backspace', 'a\bb', 'a\\x08b'],
    ['text that reads backwards', 'a\u202eb', 'a\\u202eb'],
  ])('shows %s instead of doing it', (_what, text, shown) => {
    expect(filterPieces(text)).toBe(shown + END);
  });

  test('a sequence is recognised wherever it is cut', () => {
    const text = 'a\u001b[31mb\u001b]0;x\u0007ü\u001b[2Jc';
    const whole = filterPieces(text);
    const bytes = Buffer.from(text);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const filter = new TerminalFilter();
      const parts = [filter.push(bytes.subarray(0, cut)), filter.push(bytes.subarray(cut)), filter.end()];
      expect(parts.join('')).toBe(whole);
    }
  });

  test('a sequence without an end is shown instead of being held back forever', () => {
    expect(filterPieces('\u001b[31')).toBe(`\\x1b[31${END}`);
    expect(filterPieces(`\u001b[${'1;'.repeat(100)}`, 'm')).toBe(`\\x1b[${'1;'.repeat(100)}m${END}`);
  });
});
