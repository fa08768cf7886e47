/** One page of our lists. */
interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | undefined;
}

/**
 * Returns a page of a list sorted by key. The cursor is the last key of the previous page, so that a list that changes in
 * between repeats no item and skips none that stayed. Null for an invalid cursor.
 */
export function pageOf<T>(
  sorted: readonly T[],
  keyOf: (item: T) => string,
  cursor: string | undefined,
  pageItems: number,
): Page<T> | null {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  if (cursor !== undefined && after === null) return null;
  const start = after === null ? 0 : sorted.findIndex((item) => keyOf(item) > after);
  const items = start < 0 ? [] : sorted.slice(start, start + pageItems);
  const last = items.at(-1);
  const isMore = start >= 0 && last !== undefined && start + pageItems < sorted.length;
  return { items, nextCursor: isMore ? encodeCursor(keyOf(last)) : undefined };
}

/** The items sorted by key, as {@link pageOf} needs them. */
export function sortBy<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  return items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function encodeCursor(key: string): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

function decodeCursor(cursor: string): string | null {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return typeof key === 'string' ? key : null;
  } catch {
    return null;
  }
}
