import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE, type Page } from '../../../shared/wire/primitives.ts';
import type { PageQuery } from '../../kernel/cursors.ts';
import type { AppContext } from '../http/app_env.ts';

/**
 * Finds the item with the id in the path in a list that the caller may see. Refuses as the list does, and with
 * `not_found`, also if the item is not `isLive`; `missing` is its message.
 */
export async function findListed<T extends { readonly id: string }>(
  c: AppContext,
  list: (query: PageQuery) => Promise<Result<Page<T>, ApiError>>,
  missing: (id: string) => string,
  isLive: (item: T) => boolean = () => true,
): Promise<Result<T, ApiError>> {
  const id = c.req.param('id') ?? '';
  let cursor: string | undefined;
  for (;;) {
    const page = await list({ limit: MAX_PAGE, cursor });
    if (!page.ok) return page;
    const found = page.value.items.find((item) => item.id === id);
    if (found !== undefined && isLive(found)) return ok(found);
    if (found !== undefined || page.value.next_cursor === null) return err(apiError('not_found', missing(id)));
    cursor = page.value.next_cursor;
  }
}
