import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseFolderFile } from './folder_file.ts';
import { parseSecretName } from './secret_name.ts';

describe('.svc.toml', () => {
  test.each([
    ['secrets = ["user/github-work"]', ['user/github-work']],
    ["secrets = ['user/github-work']\r\n", ['user/github-work']],
    ['\n# a comment\nsecrets=["vault://user/a",\n\t"user/b", # more\n]\n\n', ['user/a', 'user/b']],
    ['secrets = ["user/a", "user/a"]', ['user/a']],
  ])('%j names its secrets', (text, paths) => {
    expect(parseFolderFile(text)).toEqual({ ok: true, value: paths });
  });

  test.each([
    ['', 'it names no secret'],
    ['# only a comment', 'it names no secret'],
    ['secrets = []', 'it names no secret'],
    ['secret = ["user/a"]', 'it has a setting that svc does not know: did you mean "secrets"?'],
    ['secrets = ["user/a"]\n[work]\nsecrets = ["user/b"]', 'it has a setting that svc does not know'],
    ['secrets = "user/a"', '"secrets" must be a list of paths in quotes'],
    ['[secrets]\nfirst = "user/a"', '"secrets" must be a list of paths in quotes'],
    ['secrets = ["user/a", 2]', 'entry 2 of "secrets" must be a path in quotes'],
    ['secrets = [["user/a"]]', 'entry 1 of "secrets" must be a path in quotes'],
    ['secrets = ["user/a"', 'line 1 is not TOML'],
    ['secrets = ["user/a"]\nsecrets = ["user/b"]', 'line 2 is not TOML'],
    ['secrets = ["user/a"] # \u001b[31m', 'line 1 is not TOML'],
    ['secrets = ["user/a", "connectors/acme/items"]', 'entry 2 of "secrets" cannot be used'],
    ['secrets = ["../other"]', 'not allowed'],
    [`secrets = [${Array.from({ length: 65 }, (_, n) => `"user/${n}"`).join()}]`, 'more than 64 secrets'],
  ])('%j is refused', (text, problem) => {
    expect(parseFolderFile(text)).toEqual({ ok: false, error: expect.stringContaining(problem) });
  });

  test.each([`ghp_${'a'.repeat(36)}`, 'a'.repeat(33), `user/npm_${'A1'.repeat(18)}`, 'Passw0rd!', 'hunter2 hunter2'])(
    'an entry that could be a value is refused without being shown',
    (value) => {
      for (const text of [`secrets = ["${value}"]`, `${value} = ["user/a"]`, `secrets = [${value}]`]) {
        const parsed = parseFolderFile(text);
        if (parsed.ok) throw new Error('accepted');
        expect(parsed.error).not.toContain(value);
      }
    },
  );

  test('accepts only paths that a message may show (property)', () => {
    const piece = fc.constantFrom(
      'secrets',
      ' ',
      '=',
      '[',
      ']',
      ',',
      '"',
      "'",
      '#',
      '\n',
      '\t',
      'user/a',
      'b',
      '\\',
      '\0',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const parsed = parseFolderFile(pieces.join(''));
        const paths = parsed.ok ? parsed.value : [];
        expect(paths.map((path) => parseSecretName(path))).toEqual(paths.map((value) => ({ ok: true, value })));
      }),
    );
  });
});
