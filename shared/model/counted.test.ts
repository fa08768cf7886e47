import { expect, test } from 'vitest';
import { counted } from './counted.ts';

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
