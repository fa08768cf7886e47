import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { idPattern, type IdPrefix } from '../../shared/wire/ids.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import { fromBase64Url, toBase64Url } from './encoding.ts';

/** Encodes the position of a page's last item as base64url JSON. The cursor reveals nothing that the item did not. */
export function encodeCursor(position: unknown): string {
  return toBase64Url(new TextEncoder().encode(JSON.stringify(position)));
}

/** Decodes a cursor; null without one. */
export function decodeCursor<T>(schema: z.ZodType<T>, cursor: string | undefined): Result<T | null, ApiError> {
  if (cursor === undefined) return ok(null);
  try {
    return ok(schema.parse(JSON.parse(new TextDecoder().decode(fromBase64Url(cursor)))));
  } catch {
    return err(apiError('invalid_cursor', 'the cursor is not one that this list returned: start again without it'));
  }
}

/** How many items a caller wants, and where its last page ended. */
export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** A list that is read page by page. */
interface PagedList<Position, Row, Item> {
  readonly position: z.ZodType<Position>;
  /** Reads up to `limit` rows after a position; from the first row if it is null. */
  readonly read: (from: { readonly after: Position | null; readonly limit: number }) => Promise<readonly Row[]>;
  readonly toItem: (row: Row) => Item;
  readonly positionOf: (row: Row) => NoInfer<Position>;
}

/** Reads one page. Refuses with `invalid_cursor`. */
export async function readPage<Position, Row, Item>(
  { limit, cursor }: PageQuery,
  { position, read, toItem, positionOf }: PagedList<Position, Row, Item>,
): Promise<Result<Page<Item>, ApiError>> {
  const after = decodeCursor(position, cursor);
  if (!after.ok) return after;
  return ok(toPage(await read({ after: after.value, limit: limit + 1 }), limit, toItem, positionOf));
}

/** The same for a list in the order of ids, which begin with `prefix`. */
export function readPageById<Row extends { readonly id: string }, Item>(
  query: PageQuery,
  prefix: IdPrefix,
  list: Pick<PagedList<string, Row, Item>, 'read' | 'toItem'>,
): Promise<Result<Page<Item>, ApiError>> {
  const position = z.string().regex(idPattern(prefix));
  return readPage(query, { ...list, position, positionOf: ({ id }) => id });
}

/** Makes a page of up to `limit + 1` rows. The extra row shows that there are more. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  item: (row: Row) => Item,
  position: (row: Row) => unknown,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: shown.map((row) => item(row)), next_cursor: more ? encodeCursor(position(last)) : null };
}
