import { ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE, type Page } from '../../../shared/wire/primitives.ts';

type List<T> = (query: { limit: number; cursor?: string | undefined }) => Promise<Result<Page<T>, ApiError>>;

/** Finds an item by id in a list that the caller may see; null if there is none. Refuses as the list does. */
export async function findListed<T extends { readonly id: string }>(
  id: string,
  list: List<T>,
): Promise<Result<T | null, ApiError>> {
  let cursor: string | undefined;
  for (;;) {
    const page = await list({ limit: MAX_PAGE, cursor });
    if (!page.ok) return page;
    const found = page.value.items.find((item) => item.id === id);
    if (found !== undefined) return ok(found);
    if (page.value.next_cursor === null) return ok(null);
    cursor = page.value.next_cursor;
  }
}
