import { expect, test } from 'vitest';
import { capitalise, counted, toSentence } from './sentence.ts';

test.each([
  ['the path is taken', 'The path is taken'],
  ['a', 'A'],
  ['sign-in is closed', 'Sign-in is closed'],
  ['denied: wait', 'Denied: wait'],
  ['no, it is not', 'No, it is not'],
  ['Already written', 'Already written'],
  ['', ''],
])('%j starts with a word: %j', (text, sentence) => {
  expect(capitalise(text)).toBe(sentence);
});

test.each([
  'idp.corp.example could not be reached',
  'user/github is not stored',
  'credential_ref is missing',
  '--allow is not a host',
  'vault://user/x is not stored',
  'api:8443 is refused',
  'svc is not running',
  'x86 is not known',
])('%j starts with a name, which keeps its spelling', (text) => {
  expect(capitalise(text)).toBe(text);
  expect(toSentence(text)).toBe(`${text}.`);
});

test.each([
  [0, '0 requests'],
  [1, '1 request'],
  [2, '2 requests'],
])('%i is written with the right form of the word', (count, text) => {
  expect(counted(count, 'request')).toBe(text);
});

test('a word may have a plural of its own', () => {
  expect([1, 2].map((count) => counted(count, 'person', 'people'))).toEqual(['1 person', '2 people']);
});
