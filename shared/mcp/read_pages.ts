/** One page of a list as a server sent it. */
interface ListPage {
  readonly items: readonly unknown[];
  readonly nextCursor: string | undefined;
}

/**
 * The items of a paged list (MCP, pagination), unchecked. Stops at these limits, and at a cursor that a server repeats. Rejects
 * if a page cannot be read.
 */
export async function readPages(
  limits: { readonly maxPages: number; readonly maxItems: number },
  readPage: (cursor: string | undefined) => Promise<ListPage>,
): Promise<readonly unknown[]> {
  const items: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; pages < limits.maxPages && items.length < limits.maxItems; pages += 1) {
    const page = await readPage(cursor);
    items.push(...page.items);
    cursor = page.nextCursor;
    if (cursor === undefined || seen.has(cursor)) break;
    seen.add(cursor);
  }
  return items;
}
