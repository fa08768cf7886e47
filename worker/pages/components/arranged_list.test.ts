import { expect, test } from 'vitest';
import { html } from 'hono/html';
import { arrangedList, arrangeList, byNewest, byText, listQueryOf } from './arranged_list.ts';

const ITEMS = [
  { name: 'GitHub', used: '2026-01-02' },
  { name: 'aws', used: null },
  { name: 'github actions', used: '2026-01-03' },
];
type Item = (typeof ITEMS)[number];
const KIND = {
  path: '/things',
  words: ['thing', 'things'],
  placeholder: '',
  textOf: ({ name }: Item) => name,
  orders: [
    { name: 'name', title: 'By name', compare: byText<Item>(({ name }) => name) },
    { name: 'used', title: 'Last used first', compare: byNewest<Item>(({ used }) => used) },
  ],
} as const;

const namesOf = (query: Record<string, string>) => arrangeList(ITEMS, listQueryOf(query), KIND).map(({ name }) => name);

test.each([
  ['every item in the usual order', {}, ['aws', 'GitHub', 'github actions']],
  ['those with every word, in any case and order', { q: ' ACT  git ' }, ['github actions']],
  ['the newest first, and those without a time last', { sort: 'used' }, ['github actions', 'GitHub', 'aws']],
  ['the usual order for an unknown one', { sort: 'constructor' }, ['aws', 'GitHub', 'github actions']],
])('a list has %s', (_, query, names) => {
  expect(namesOf(query)).toEqual(names);
});

test.each(['0', '-1', '1.5', 'x', '1e99', ''])('the page %j is the first', (page) => {
  expect(listQueryOf({ page }).page).toBe(1);
});

const NONE = html`<p>nothing yet</p>`;

async function textOf(count: number, query: Record<string, string>, isWhole = true) {
  const items = Array.from({ length: count }, (_, index) => ({
    name: `n${String(index).padStart(4, '0')}`,
    used: null,
  }));
  const table = (shown: readonly Item[]) => html`${shown.map(({ name }) => `${name} `)}`;
  const view = { kind: KIND, query: listQueryOf(query), items, isWhole, table, none: NONE };
  return String(await arrangedList<Item>(view)).replaceAll(/\s+/g, ' ');
}

test('a long list has pages that keep the search, and a page after the last one is the last one', async () => {
  const first = await textOf(250, { q: 'n0' });
  expect(first).toContain('n0049');
  expect(first).not.toContain('n0050');
  expect(first).toContain('href="/things?q=n0&amp;page=2"');
  const last = await textOf(250, { q: 'n0', page: '99' });
  expect(last).toContain('n0249');
  expect(last).not.toContain('rel="next"');
});

test('a list says how many there are, how many match, and when not all were looked through', async () => {
  expect(await textOf(1, {})).toContain('>1 thing<');
  expect(await textOf(3, { q: 'n0001' })).toContain('>1 thing of 3<');
  expect(await textOf(3, {}, false)).toContain('only the first 3 are looked through');
  expect(await textOf(3, { q: 'zz' })).toContain('Nothing has these words');
  expect(await textOf(0, { q: 'zz' })).toContain('nothing yet');
});
