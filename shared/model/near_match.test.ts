import { expect, test } from 'vitest';
import { nearMatch } from './near_match.ts';

const names = ['github-api', 'github-git', 'openai', 'SVC_MAX_HEADERS'];

test.each([
  ['github-ap', 'github-api'],
  ['githubgit', 'github-git'],
  ['opnai', 'openai'],
  ['poenai', 'openai'],
  ['SVC_MAX_HEADER', 'SVC_MAX_HEADERS'],
  ['gihub', 'github-api'],
  ['SVC_X', null],
  ['zzz', null],
  ['', null],
])('%j most likely means %j', (word, meant) => {
  expect(nearMatch(word, names)).toBe(meant);
});

test('finds nothing near if there are no candidates', () => {
  expect(nearMatch('x', [])).toBeNull();
});
