import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { emptyState } from './empty_state.ts';
import { PAGE_WORDS, pathWith } from './pager.ts';
import { searchField } from './search_field.ts';

/** How a list is searched and put in order, from the address. */
export interface ListQuery {
  readonly q: string;
  readonly sort: string;
  /** From 1. */
  readonly page: number;
}

/** An order of a list; the first one of a list is its usual order. */
export interface ListOrder<Item> {
  readonly name: string;
  readonly title: string;
  readonly compare: (a: Item, b: Item) => number;
}

interface ListKind<Item> {
  /** Where the list is. */
  readonly path: string;
  /** One item, and several. */
  readonly words: readonly [one: string, many: string];
  readonly placeholder: string;
  /** The words that a search looks through. */
  readonly textOf: (item: Item) => string;
  readonly orders: readonly [ListOrder<Item>, ...ListOrder<Item>[]];
}

/** A page of a list. A browser on a slow machine lays out so many rows while a person does not notice it. */
const SHOWN = 50;

/** Reads `q`, `sort` and `page`; what makes no sense is left out. */
export function listQueryOf(query: Readonly<Record<string, string>>): ListQuery {
  const page = Number(query['page'] ?? '1');
  return {
    q: (query['q'] ?? '').trim().slice(0, 200),
    sort: query['sort'] ?? '',
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
  };
}

/** The items that have every word of the search, in order. */
export function arrangeList<Item>(
  items: readonly Item[],
  { q, sort }: ListQuery,
  { textOf, orders }: Pick<ListKind<Item>, 'textOf' | 'orders'>,
): readonly Item[] {
  const words = q.toLowerCase().split(/\s+/);
  const found = items.filter((item) => {
    const text = textOf(item).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const { compare } = orders.find(({ name }) => name === sort) ?? orders[0];
  return found.toSorted(compare);
}

/** Orders by a text, `a` first. */
export function byText<Item>(textOf: (item: Item) => string): (a: Item, b: Item) => number {
  return (a, b) => textOf(a).localeCompare(textOf(b), 'en');
}

/** Orders by a time, the newest first and those without one last. */
export function byNewest<Item>(timeOf: (item: Item) => string | null): (a: Item, b: Item) => number {
  return (a, b) => (timeOf(b) ?? '').localeCompare(timeOf(a) ?? '', 'en');
}

/** A list with a search, an order and pages; `table` shows the rows. Without items it is `none`. */
export function arrangedList<Item>(view: {
  readonly kind: ListKind<Item>;
  readonly query: ListQuery;
  readonly items: readonly Item[];
  /** False if there are more items than were read. */
  readonly isWhole: boolean;
  readonly table: (shown: readonly Item[]) => Html;
  readonly none: Html;
}): Html {
  const { kind, query, items, table, none } = view;
  if (items.length === 0) return html`<div class="panel flush">${none}</div>`;
  const found = arrangeList(items, query, kind);
  const last = Math.max(1, Math.ceil(found.length / SHOWN));
  const page = Math.min(query.page, last);
  const shown = found.slice((page - 1) * SHOWN, page * SHOWN);
  return html`${searchForm(kind, query)}
    <p class="small quiet" id="found" role="status">${foundWords(view, found.length)}</p>
    <div id="results" class="stack">
      <div class="panel flush">${shown.length === 0 ? nothing(kind) : table(shown)}</div>
      ${pages(kind, { ...query, page }, last)}
    </div>`;
}

function searchForm<Item>({ path, orders, words, placeholder }: ListKind<Item>, { q, sort }: ListQuery): Html {
  return html`<form
    class="list-search"
    role="search"
    aria-label="${words[1]}"
    method="get"
    action="${path}"
    data-island="search"
  >
    ${searchField(q, placeholder)}
    <div class="field">
      <label for="sort">Order</label>
      <select id="sort" name="sort">
        ${orders.map(
          ({ name, title }, index) =>
            html`<option value="${index === 0 ? '' : name}" ${name === sort ? 'selected' : ''}>${title}</option>`,
        )}
      </select>
    </div>
    <button>Show</button>
  </form>`;
}

function foundWords<Item>(
  { kind, query, items, isWhole }: Parameters<typeof arrangedList<Item>>[0],
  found: number,
): string {
  const [one, many] = kind.words;
  const count = `${found} ${found === 1 ? one : many}`;
  const of = query.q === '' ? count : `${count} of ${items.length}`;
  return isWhole ? of : `${of}; only the first ${items.length} are looked through`;
}

function nothing<Item>({ path, words }: ListKind<Item>): Html {
  return emptyState({
    title: 'Nothing has these words',
    next: 'Try another word, or a part of one.',
    action: html`<a class="button" href="${path}">Show all ${words[1]}</a>`,
  });
}

function pages<Item>({ path }: ListKind<Item>, { q, sort, page }: ListQuery, last: number): Html | string {
  if (last === 1) return '';
  const at = (number: number) => pathWith(path, { q, sort, page: number === 1 ? '' : String(number) });
  return html`<nav class="pager" aria-label="Pages">
    ${page === 1 ? '' : html`<a class="button" href="${at(1)}">${PAGE_WORDS.first}</a>`}
    ${page === last ? '' : html`<a class="button" rel="next" href="${at(page + 1)}">${PAGE_WORDS.next}</a>`}
  </nav>`;
}
