import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import {
  cutShownText,
  findSteering,
  listHiddenCharacters,
  replaceHidden,
  showHidden,
  toShownJson,
  toShownLine,
} from './shown_text.ts';

describe('hidden characters', () => {
  test.each([
    ['a zero-width space', 'a\u200bb', 'U+200B'],
    ['a direction override', 'gpj\u202eexe', 'U+202E'],
    ['a tag', 'x\u{e0041}', 'U+E0041'],
    ['a variation selector after a letter', 'a\ufe0f', 'U+FE0F'],
    ['a variation selector of the second block', 'a\u{e0100}', 'U+E0100'],
    ['a joiner between Latin letters', 'pay\u200dpal', 'U+200D'],
    ['a soft hyphen', 'co\u00adop', 'U+00AD'],
    ['an escape', 'a\u001b[31m', 'U+001B'],
    ['a filler', 'a\u3164', 'U+3164'],
    ['a line separator', 'a\u2028b', 'U+2028'],
    ['a lone surrogate', 'a\ud800', 'U+D800'],
    ['a byte order mark', '\ufeffa', 'U+FEFF'],
    ['a control of eight bits', 'a\u009b2J', 'U+009B'],
    ['a delete', 'a\u007f', 'U+007F'],
    ['a return that writes over the line', 'rm -rf /\rls', 'U+000D'],
    ['a space that is none', 'rm\u00a0-rf', 'U+00A0'],
    ['a wide space among Latin letters', 'a\u3000b', 'U+3000'],
    ['a blank braille pattern', 'a\u2800b', 'U+2800'],
    ['a private character', 'a\ue000', 'U+E000'],
    ['an unassigned character', 'a\u0378', 'U+0378'],
    ['a tag of a flag', '\u{1f3f4}\u{e0067}', 'U+E0067'],
    ['a second variation selector', '\u{1f600}\ufe0f\ufe0e', 'U+FE0E'],
    ['a variation selector after a digit', '1\ufe0f', 'U+FE0F'],
    ['marks that cover the lines around', `z${'\u0301'.repeat(7)}`, 'U+0301'],
  ])('finds %s', (_what, text, name) => {
    expect(listHiddenCharacters(text)).toEqual([name]);
    expect(showHidden(text)).toContain(`<${name}>`);
  });

  test.each([
    'plain text\n\twith lines\r\n',
    'caf\u00e9 na\u00efve',
    '\u2764\ufe0f \u{1f468}\u200d\u{1f469}\u200d\u{1f467} 1\ufe0f\u20e3',
    '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
    '\u0915\u094d\u200d\u0937',
    '\u65e5\u672c\u8a9e\u3000\u6771\u4eac',
    'e\u0301 \u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u{1f469}\u{1f3fd}\u200d\u{1f4bb} \u{1f441}\ufe0f\u200d\u{1f5e8}\ufe0f',
  ])('finds none in ordinary writing: %s', (text) => {
    expect(listHiddenCharacters(text)).toEqual([]);
    expect(showHidden(text)).toBe(text);
  });

  test('names each kind once, and a bounded number of kinds', () => {
    expect(listHiddenCharacters('\u200b\u200b\u200c')).toEqual(['U+200B', 'U+200C']);
    const many = String.fromCodePoint(...Array.from({ length: 60 }, (_unused, index) => 0xe0020 + index));
    expect(listHiddenCharacters(many)).toHaveLength(8);
  });
});

describe('a displayed text', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 60 });

  test('contains nothing hidden, for any input', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(listHiddenCharacters(showHidden(text))).toEqual([]);
        expect(listHiddenCharacters(toShownLine(text, 1_000), false)).toEqual([]);
        expect(toShownLine(text, 40).length).toBeLessThanOrEqual(40);
        expect(toShownLine(text, 40).isWellFormed()).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test('as JSON is the same value', () => {
    fc.assert(
      fc.property(fc.array(anyText), (texts) => {
        const json = toShownJson(JSON.stringify(texts));
        expect(JSON.parse(json)).toEqual(texts);
        expect(listHiddenCharacters(json)).toEqual([]);
      }),
    );
  });

  test('is one line if only one is allowed', () => {
    expect(toShownLine('a\r\nb\tc\rd', 100)).toBe('a b c<U+000D>d');
    expect(replaceHidden('a\r\nb', { keepsLines: false, write: () => '?' })).toBe('a??b');
    expect([findSteering('a\nb', true), findSteering('a\nb', false)]).toEqual([null, 'U+000A']);
  });

  test('states how much was truncated', () => {
    expect(cutShownText('x'.repeat(100), 50)).toMatch(/^x+ \u2026 72 more characters$/);
    expect(cutShownText('x'.repeat(50), 50)).toBe('x'.repeat(50));
  });

  test('a text with invisible characters is stored, one that controls a terminal is not', () => {
    expect(['a\u200b', 'a\u00a0b', 'a\u0378'].map((text) => findSteering(text, false))).toEqual([null, null, null]);
    expect(['a\u001b', 'a\u202e', 'a\u2028', 'a\ud800'].map((text) => findSteering(text, false))).toEqual([
      'U+001B',
      'U+202E',
      'U+2028',
      'U+D800',
    ]);
  });
});
