import { expect, test } from 'vitest';
import { capitalise, toSentence } from './sentence.ts';

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
