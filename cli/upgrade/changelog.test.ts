import { describe, expect, test } from 'vitest';
import { changesSince, compareVersions, readChangelog } from './changelog.ts';

const CHANGELOG = `# Changes

Words before the first version.

## 4.10.0 (2026-12-01)

- new

## 4.9.1

- mended

### More

## Not a version

## 4.9.0
`;

describe('a changelog', () => {
  test('is read version by version', () => {
    expect(readChangelog(CHANGELOG)).toEqual([
      { version: '4.10.0', text: '- new' },
      { version: '4.9.1', text: '- mended\n\n### More\n\n## Not a version' },
      { version: '4.9.0', text: '' },
    ]);
  });

  test.each(['', '# Changes\n', '## 4\n', '## 99999999999.0.0\n'])('without a version gives none: %j', (text) => {
    expect(readChangelog(text)).toEqual([]);
  });

  test.each([
    ['4.9.0', ['4.10.0', '4.9.1']],
    ['4.9.1', ['4.10.0']],
    ['4.10.0', []],
    ['5.0.0', []],
  ])('says what is new since %s', (version, expected) => {
    expect(changesSince(readChangelog(CHANGELOG), version).map((each) => each.version)).toEqual(expected);
  });
});

test.each([
  ['4.9.0', '4.10.0', -1],
  ['4.10.0', '4.9.9', 1],
  ['5.0.0', '4.99.99', 1],
  ['4.0.1', '4.0.0', 1],
  ['4.0.0', '4.0.0', 0],
])('%s against %s is compared by number', (a, b, sign) => {
  expect(Math.sign(compareVersions(a, b))).toBe(sign);
});
