import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

/** The link to the next page of a list; keeps the query. Lists that are not in order of time have other labels. */
export function pager(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  next: string | null,
  words: { readonly first: string; readonly next: string } = { first: 'Newest', next: 'Older' },
): Html | string {
  const isFirst = (query['cursor'] ?? '') === '';
  if (next === null && isFirst) return '';
  const first = isFirst
    ? ''
    : html`<a class="button" href="${pathWith(path, { ...query, cursor: undefined })}">${words.first}</a>`;
  const more =
    next === null
      ? ''
      : html`<a class="button" rel="next" href="${pathWith(path, { ...query, cursor: next })}">${words.next}</a>`;
  return html`<nav class="pager" aria-label="Pages">${first} ${more}</nav>`;
}

/** For a list that is not in order of time. */
export const PAGE_WORDS = { first: 'First page', next: 'Next page' };

/** A path with the non-empty parameters. */
export function pathWith(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '');
  const text = new URLSearchParams(given).toString();
  return text === '' ? path : `${path}?${text}`;
}
