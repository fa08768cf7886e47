import type { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Page } from '../../shared/wire/primitives.ts';
import { fromBase64Url, toBase64Url } from './encoding.ts';

/** Encodes the place of a page's last item as base64url JSON. The cursor reveals nothing that the item did not. */
export function encodeCursor(place: unknown): string {
  return toBase64Url(new TextEncoder().encode(JSON.stringify(place)));
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

/** Makes a page of up to `limit + 1` rows. The extra row shows that there are more. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  item: (row: Row) => Item,
  place: (row: Row) => unknown,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: shown.map((row) => item(row)), next_cursor: more ? encodeCursor(place(last)) : null };
}
