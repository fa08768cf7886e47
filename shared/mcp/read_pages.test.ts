import { expect, test } from 'vitest';
import { readPages } from './read_pages.ts';

const MANY = { maxPages: 10, maxItems: 100 };

test('reads the pages of a list until one names no next page', async () => {
  const asked: (string | undefined)[] = [];
  const items = await readPages(MANY, async (cursor) => {
    asked.push(cursor);
    return cursor === undefined ? { items: [1, 2], nextCursor: 'a' } : { items: [3], nextCursor: undefined };
  });
  expect({ items, asked }).toEqual({ items: [1, 2, 3], asked: [undefined, 'a'] });
});

test('stops at a cursor that the server repeats', async () => {
  let calls = 0;
  const items = await readPages(MANY, async () => ({ items: [(calls += 1)], nextCursor: 'same' }));
  expect(items).toEqual([1, 2]);
});

test('stops at the largest number of pages and of items', async () => {
  let calls = 0;
  const readPage = async () => ({ items: ['x', 'y'], nextCursor: String((calls += 1)) });
  expect(await readPages({ maxPages: 3, maxItems: 100 }, readPage)).toHaveLength(6);
  expect(await readPages({ maxPages: 100, maxItems: 3 }, readPage)).toHaveLength(4);
});
