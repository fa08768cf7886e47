import { describe, expect, test } from 'vitest';
import { hiddenCharacters, withHiddenCharactersShown } from './hidden_characters.ts';

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
  ])('finds %s', (_what, text, name) => {
    expect(hiddenCharacters(text)).toEqual([name]);
    expect(withHiddenCharactersShown(text)).toContain(`<${name}>`);
  });

  test.each([
    'plain text\n\twith lines\r\n',
    'caf\u00e9 na\u00efve',
    '\u2764\ufe0f \u{1f468}\u200d\u{1f469}\u200d\u{1f467} 1\ufe0f\u20e3',
    '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
    '\u0915\u094d\u200d\u0937',
    '\u65e5\u672c\u8a9e',
  ])('ordinary writing has none: %s', (text) => {
    expect(hiddenCharacters(text)).toEqual([]);
    expect(withHiddenCharactersShown(text)).toBe(text);
  });

  test('names each kind once, and a bounded number of kinds', () => {
    expect(hiddenCharacters('\u200b\u200b\u200c')).toEqual(['U+200B', 'U+200C']);
    const many = String.fromCodePoint(...Array.from({ length: 60 }, (_unused, index) => 0xe0020 + index));
    expect(hiddenCharacters(many)).toHaveLength(8);
  });
});
