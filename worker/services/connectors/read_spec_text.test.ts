import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readSpecText } from './read_spec_text.ts';

const FOLDER = new URL('../../../catalog/connectors/', import.meta.url);

const SPEC = `# A comment
schema_version: 1
connector:
  fqn: acme/items
  version: 1.0.0
  title: Items
hosts: [api.example.test]
credential:
  kind: api_key
operations:
  - name: list-items
    method: GET
    path: /items
    summary: List items
    effect: read
`;

const rows = (row: (index: number) => string, count: number) => Array.from({ length: count }, (_, index) => row(index));
const problemsOf = (text: string) => {
  const read = readSpecText(text);
  return read.ok ? [] : read.error.map(({ field, message, line }) => [line, field, message]);
};

test('every connector of the catalog is read', () => {
  for (const file of readdirSync(FOLDER)) expect(problemsOf(readFileSync(new URL(file, FOLDER), 'utf8'))).toEqual([]);
});

test('the same spec is the same as YAML and as JSON', () => {
  const yaml = readSpecText(SPEC);
  if (!yaml.ok) throw new Error('the spec is valid');
  expect(readSpecText(JSON.stringify(yaml.value, null, 2))).toEqual(yaml);
});

describe('a problem', () => {
  test('has the line of its field', () => {
    expect(problemsOf(SPEC.replace('effect: read', 'effect: see'))).toMatchObject([
      [15, 'operations.0.effect', expect.any(String)],
    ]);
    expect(problemsOf(SPEC.replace('  kind: api_key', '  kind: magic'))).toMatchObject([
      [9, 'credential.kind', expect.any(String)],
    ]);
  });

  test('of a field that is missing has the line of what should have it', () => {
    expect(problemsOf(SPEC.replace('    path: /items\n', ''))).toMatchObject([
      [11, 'operations.0.path', expect.any(String)],
    ]);
  });

  test('says the same in JSON, with its line', () => {
    const yaml = readSpecText(SPEC);
    if (!yaml.ok) throw new Error('the spec is valid');
    const json = JSON.stringify(yaml.value, null, 2).replace('"read"', '"see"');
    const line = json.slice(0, json.indexOf('"see"')).split('\n').length;
    const [[, , message] = []] = problemsOf(SPEC.replace('effect: read', 'effect: see'));
    expect(problemsOf(json)).toEqual([[line, 'operations.0.effect', message]]);
  });
});

describe('refuses with the line', () => {
  test.each([
    ['a key twice', `${SPEC}schema_version: 1\n`, 16, /has a key twice/],
    [
      'a key twice in flow style',
      SPEC.replace('[api.example.test]', '[api.example.test]\nx: {a: 1, "a": 2}'),
      8,
      /has a key twice/,
    ],
    ['a key that is a mapping', `${SPEC}? {a: 1}\n: 2\n`, 2, /has a key twice/],
    ['text that is no YAML', `${SPEC}wrong: "x\n`, 17, /is not YAML/],
    ['a tag', SPEC.replace('Items', '!!js/function "x"'), 6, /is not YAML/],
    ['another version of YAML', `%YAML 1.1\n---\n${SPEC}`, null, /is not YAML 1\.2/],
    ['two documents', `${SPEC}---\n${SPEC}`, 16, /is not YAML/],
    [
      'a host that begins with a star',
      SPEC.replace('[api.', '[*.'),
      7,
      /\*\.example\.test is an alias of nothing; .* in quotes/,
    ],
    ['an alias before its anchor', `${SPEC}x: *a\ny: &a 1\n`, 16, /\*a is an alias of nothing/],
    ['a bracket too much', `${SPEC}x: ]\n`, 16, /a bracket is closed/],
    ['broken JSON', '{\n  "schema_version": 1,\n}', 3, /is not JSON/],
  ])('%s', (_, text, line, message) => {
    expect(problemsOf(text)).toMatchObject([[line, '', expect.stringMatching(message)]]);
  });

  test('a key twice in JSON', () => {
    expect(problemsOf('{"schema_version": 1, "schema_version": 1}')).toMatchObject([
      [null, '', 'has a key twice in one object'],
    ]);
  });

  test('aliases that grow', () => {
    const levels = Array.from({ length: 9 }, (_, level) => {
      const before = level === 0 ? 'lol' : `*a${level - 1}`;
      return `x${level}: &a${level} [${Array.from({ length: 9 }, () => before).join(', ')}]`;
    });
    expect(problemsOf(`${SPEC}${levels.join('\n')}\n`)).toMatchObject([
      [null, '', expect.stringMatching(/has aliases/)],
    ]);
  });

  test('a key that would become a prototype', () => {
    expect(problemsOf(`${SPEC}__proto__: {polluted: true}\n`)).toMatchObject([[16, '__proto__', expect.any(String)]]);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

// Unchecked, each of these ends the program or holds it for half a minute.
describe('a hostile text is refused before it is parsed', () => {
  const SIZE = 256 * 1024;
  test.each([
    ['deep lists', '['.repeat(SIZE)],
    ['deep mappings', 'x: ' + '{a: '.repeat(SIZE / 4)],
    ['deep lists behind quoted brackets', 'x: ' + '[ "]", '.repeat(SIZE / 7)],
    ['deep items', '- '.repeat(SIZE / 2)],
    ['deep keys', '? '.repeat(SIZE / 2)],
    ['deep indentation', rows((index) => `${' '.repeat(index)}a:`, 700).join('\n')],
    ['many keys', rows((index) => `k${index}: 1`, SIZE / 8).join('\n')],
    ['closing brackets', ']'.repeat(SIZE)],
    ['many tags', '!a '.repeat(SIZE / 3)],
  ])('%s', (_, text) => {
    const refused = expect.stringMatching(/nested more than|too large: as YAML|closed that was not opened/);
    expect(problemsOf(text)).toEqual([[expect.any(Number), '', refused]]);
  });

  test('what is just allowed is parsed', () => {
    const text = `x: ${'['.repeat(60)}${']'.repeat(60)}\n`;
    expect(problemsOf(text).some(([, field]) => field === 'x')).toBe(true);
  });
});
