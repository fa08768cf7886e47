import type { z } from 'zod';
import type { Page } from '../../shared/wire/primitives.ts';
import type { CallOptions, HttpClient } from './http_client.ts';

const PAGE = 500;

/** Limits of a read: the number of items, and a signal that ends it early. */
interface FetchLimits {
  readonly most?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Reads all items of a paged list, up to the limit. */
export async function fetchAllPages<T>(
  client: HttpClient,
  path: string,
  schema: z.ZodType<Page<T>>,
  query: NonNullable<CallOptions['query']> = {},
  { most = Number.POSITIVE_INFINITY, signal }: FetchLimits = {},
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const limit = Math.min(PAGE, most - items.length);
    const page: Page<T> = await client.call('GET', path, schema, {
      query: { ...query, limit, cursor: cursor ?? undefined },
      signal,
    });
    items.push(...page.items);
    cursor = page.items.length === 0 ? null : page.next_cursor;
  } while (cursor !== null && items.length < most);
  return items;
}
