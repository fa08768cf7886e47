import { expect, test } from 'vitest';
import { Vocabulary, wrongLetters } from './spelling.ts';

test.each([
  ['postgres', 'postgres', 0],
  ['postgress', 'postgres', 1],
  ['potsgres', 'postgres', 1],
  ['postgre', 'postgres', 1],
  ['podtgrea', 'postgres', 2],
  ['abcd', 'badc', 2],
  ['abcdef', 'zzzzzz', 3],
  ['', 'ab', 2],
  ['', 'abc', 3],
])('from %j to %j', (one, other, wrong) => {
  expect([wrongLetters(one, other, 2), wrongLetters(other, one, 2)]).toEqual([wrong, wrong]);
});

test('the nearest words, the most frequent first; short and long words have none', () => {
  const words = new Vocabulary();
  for (const list of [['slack', 'black'], ['slack'], ['stack'], ['cat'], ['kubernetes'], ['k'.repeat(33)]]) {
    words.count(list, 1);
  }
  expect(words.similarTo('slcak')).toEqual(['slack']);
  expect(words.similarTo('sxack')).toEqual(['slack', 'stack']);
  expect(words.similarTo('kuberntse')).toEqual(['kubernetes']);
  expect(words.similarTo('cta')).toEqual([]);
  expect(words.similarTo('k'.repeat(34))).toEqual([]);
});

test('a rare word is corrected only to a much more frequent one', () => {
  const words = new Vocabulary();
  for (let times = 0; times < 3; times += 1) words.count(['stripe'], 1);
  words.count(['strips'], 1);
  expect(words.similarTo('strips')).toEqual([]);
  words.count(['stripe'], 1);
  expect(words.similarTo('strips')).toEqual(['stripe']);
  words.count(['stripe'], -1);
  expect(words.similarTo('strips')).toEqual([]);
});
