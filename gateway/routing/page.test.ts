import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageOf, sortBy } from './page.ts';

const key = (text: string) => text;

test('the pages together are the whole list', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 30 }), fc.integer({ min: 1, max: 7 }), (items, size) => {
      const sorted = sortBy(items, key);
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = pageOf(sorted, key, cursor, size)!;
        seen.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(seen).toEqual(sorted);
    }),
  );
});

test('a list that changes between pages repeats no item and skips none that stayed', () => {
  const first = pageOf(['b', 'c', 'd', 'e'], key, undefined, 2)!;
  expect(first.items).toEqual(['b', 'c']);
  expect(pageOf(['a', 'd', 'e'], key, first.nextCursor, 2)?.items).toEqual(['d', 'e']);
});

test('refuses an unknown cursor', () => {
  for (const cursor of ['', 'x', Buffer.from('7').toString('base64url')])
    expect(pageOf(['a'], key, cursor, 2)).toBeNull();
});
