import type { z } from 'zod';
import type { Page } from '../../shared/wire/primitives.ts';
import type { CallOptions, HttpClient } from './http_client.ts';

const PAGE = 500;

/** Reads all items of a paged list, up to `most`. */
export async function fetchAllPages<T>(
  client: HttpClient,
  path: string,
  schema: z.ZodType<Page<T>>,
  query: NonNullable<CallOptions['query']> = {},
  most = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const limit = Math.min(PAGE, most - items.length);
    const page: Page<T> = await client.call('GET', path, schema, {
      query: { ...query, limit, cursor: cursor ?? undefined },
    });
    items.push(...page.items);
    cursor = page.items.length === 0 ? null : page.next_cursor;
  } while (cursor !== null && items.length < most);
  return items;
}
