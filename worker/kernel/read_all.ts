import type { ApiError } from '../../shared/wire/errors.ts';
import type { Result } from '../../shared/model/result.ts';
import { MAX_PAGE, type Page } from '../../shared/wire/primitives.ts';
import type { PageQuery } from './cursors.ts';

/** How much is read for a page of the console; the commands read everything. */
const MOST_READ = 2_000;

type List<T> = (query: PageQuery) => Promise<Result<Page<T>, ApiError>>;

/** A list as far as it was read. */
export interface ReadList<T> {
  readonly items: readonly T[];
  /** False if there is more. */
  readonly isWhole: boolean;
}

/** Reads a list page by page up to a limit. Throws if a page is refused, because the cursors are its own. */
export async function readAll<T>(list: List<T>): Promise<ReadList<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await list({ limit: MAX_PAGE, cursor });
    if (!page.ok) throw Object.assign(new Error('a list was refused'), { code: page.error.code });
    items.push(...page.value.items);
    if (page.value.next_cursor === null) return { items, isWhole: true };
    if (items.length >= MOST_READ) return { items, isWhole: false };
    cursor = page.value.next_cursor;
  }
}
