import { expect, test } from 'vitest';
import { matchesTemplate } from './matches_template.ts';

test.each([
  ['file:///{name}', 'file:///a.txt', true],
  ['file:///{name}', 'file:///a/b.txt', false],
  ['file:///{name}', 'file:///', false],
  ['file:///{+path}', 'file:///a/b.txt', true],
  ['repo://{owner}/{name}/issues/{id}', 'repo://a/b/issues/7', true],
  ['repo://{owner}/{name}/issues/{id}', 'repo://a/b/pulls/7', false],
  ['a{+x}b{y}c', 'a/b/b1c', true],
  ['x://list{?page,size}', 'x://list', true],
  ['x://list{?page,size}', 'x://list?page=2', true],
  ['x://a{/rest*}', 'x://a/b/c', true],
  ['x://a{.ending}', 'x://a.txt', true],
  ['x://plain', 'x://plain', true],
  ['x://plain', 'x://plainer', false],
  ['x://{open', 'x://{open', false],
  ['x://{}', 'x://', false],
])('%s and %s: %s', (template, uri, expected) => {
  expect(matchesTemplate(template, uri)).toBe(expected);
});

test('many adjacent variables match quickly, where a regular expression would backtrack', () => {
  expect(matchesTemplate(`x://${'{a}'.repeat(12)}!`, `x://${'a'.repeat(4_000)}`)).toBe(false);
  expect(matchesTemplate(`x://${'{a}'.repeat(12)}!`, `x://${'a'.repeat(4_000)}!`)).toBe(true);
});

test('a template with too many variables matches nothing', () => {
  expect(matchesTemplate('{a}'.repeat(13), 'a'.repeat(20))).toBe(false);
});
