/** One page of a list of ours. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | undefined;
}

/**
 * A page of a list that is in the order of its keys. The cursor is the last key of the page before, so that a list which
 * changes in between neither repeats an item nor leaves one out that was there all the time. Null for a cursor of nobody's.
 */
export function pageOf<T>(
  sorted: readonly T[],
  keyOf: (item: T) => string,
  cursor: string | undefined,
  pageItems: number,
): Page<T> | null {
  const after = cursor === undefined ? null : decoded(cursor);
  if (cursor !== undefined && after === null) return null;
  const start = after === null ? 0 : sorted.findIndex((item) => keyOf(item) > after);
  const items = start < 0 ? [] : sorted.slice(start, start + pageItems);
  const last = items.at(-1);
  const isMore = start >= 0 && last !== undefined && start + pageItems < sorted.length;
  return { items, nextCursor: isMore ? encoded(keyOf(last)) : undefined };
}

/** The items in the order of their keys, as {@link pageOf} wants them. */
export function sortedBy<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  return items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function encoded(key: string): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

function decoded(cursor: string): string | null {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return typeof key === 'string' ? key : null;
  } catch {
    return null;
  }
}
