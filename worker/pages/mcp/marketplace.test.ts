import { describe, expect, test } from 'vitest';
import type { MarketplaceItem, MarketplacePage } from '../../../shared/wire/marketplace.ts';
import { marketplacePage } from './marketplace.ts';
import { type EntryView, marketplaceEntryPage } from './marketplace_entry.ts';
import { entryPath } from './marketplace_words.ts';

const NOW = Date.parse('2026-01-02T03:04:05.000Z');
const item: MarketplaceItem = {
  name: 'io.example/one',
  title: null,
  description: 'One',
  version: '1.0.0',
  status: 'active',
  published_at: null,
  updated_at: null,
  repository_url: null,
  website_url: null,
  has_icon: false,
  rule_problem: null,
  packages: [],
  remotes: [],
  problems: [],
  risks: [],
  installed: false,
};
const found: MarketplacePage = {
  items: [item],
  next_cursor: null,
  fetched_at: '2026-01-02T02:52:05.000Z',
  stale: false,
  partial: false,
};
const query = { q: '', registry_type: '', transport: '', needs_secret: '', publisher: '', cursor: '' };

async function textOfPage(changes: Partial<MarketplacePage>): Promise<string> {
  const page = marketplacePage({ query, found: { ...found, ...changes }, nowMs: NOW });
  return String(await page.content)
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

describe('the list of the marketplace', () => {
  test('says how old it is, and whether the registry does not answer', async () => {
    expect(await textOfPage({})).toContain('Read from the registry 12 min ago');
    expect(await textOfPage({})).not.toContain('does not answer');
    expect(await textOfPage({ stale: true })).toContain('As of 12 min ago ; the registry does not answer');
  });

  test('says that it is partial', async () => {
    expect(await textOfPage({})).not.toContain('partial');
    expect(await textOfPage({ partial: true })).toContain('This list is incomplete');
  });

  test('shows the line of risk of each server', async () => {
    const risks = [
      { code: 'runs_code', text: 'runs code as you' },
      { code: 'secrets', text: '2 secrets' },
    ] as const;
    expect(await textOfPage({ items: [{ ...item, risks: [...risks] }] })).toContain('runs code as you · 2 secrets');
  });

  test('keeps its filters in the form and in the link to the next page', async () => {
    const filtered = { ...query, needs_secret: 'false', publisher: 'com.acme"><script>' };
    const page = marketplacePage({ query: filtered, found: { ...found, next_cursor: 'next' }, nowMs: NOW });
    const html = String(await page.content);
    expect(html).toMatch(/<option value="false" selected>\s*Needs none/);
    expect(html).toContain('value="com.acme&quot;&gt;&lt;script&gt;"');
    expect(html).toMatch(/href="[^"]*needs_secret=false&amp;publisher=com.acme%22%3E%3Cscript%3E&amp;cursor=next"/);
    expect(html).not.toContain('<script');
  });

  test('says that an entry is deprecated, and shows invisible characters', async () => {
    const hostile = { ...item, status: 'deprecated' as const, description: 'a\u202eb' };
    expect(await textOfPage({ items: [hostile] })).toMatch(/Deprecated.*a &lt;U\+202E&gt; b/);
  });
});

const entryWith = (packages: MarketplaceItem['packages']) => {
  const { installed: _, ...fields } = item;
  const rest = { installed_servers: [], versions: [], options: [], preview: null, stale: false };
  return { ...fields, ...rest, installed: false, packages, fetched_at: found.fetched_at };
};

async function textOfEntry(packages: MarketplaceItem['packages']): Promise<string> {
  const entry = entryWith(packages);
  const page = marketplaceEntryPage({ entry, readme: null, isSignedIn: false, nowMs: NOW });
  return String(await page.content)
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

const npm = {
  registry_type: 'npm',
  registry_base_url: null,
  identifier: '@acme/one',
  version: '1.0.0',
  transport: 'stdio',
  runtime_hint: 'npx',
  runtime_arguments: [],
  package_arguments: [],
  environment_variables: [],
};

const pageWith = async (readme: EntryView['readme'], isSignedIn = true) =>
  String(await marketplaceEntryPage({ entry: entryWith([]), readme, isSignedIn, nowMs: NOW }).content);

describe('the README of an entry', () => {
  test('is asked for by a link, and only by a person who is signed in', async () => {
    expect(await pageWith(null)).toMatch(/href="[^"]*&amp;readme=1#readme">Show its README</);
    expect(await pageWith(null, false)).not.toContain('README');
  });

  test('is text in which nothing is markup, and says whose it is', async () => {
    const text = '<img src=x onerror=alert(1)> <script>alert(1)</script> "quoted" a\u202eb </pre></section>';
    const html = await pageWith({ text, cut: true, of: 'the npm package <b>', host: 'registry.test' });
    expect(html).toContain('&lt;img src=x onerror=alert(1)&gt; &lt;script&gt;');
    expect(html).toContain('&lt;/pre&gt;&lt;/section&gt;');
    expect(html).not.toMatch(/<script|<img src=x|<b>/);
    expect(html).toContain('&lt;U+202E&gt;');
    expect(html).toContain('sent by registry.test');
    expect(html).toContain('The rest is left out');
  });

  test('that cannot be had is explained', async () => {
    expect(await pageWith({ problem: 'No README <of> it.' })).toContain('No README &lt;of&gt; it.');
  });
});

describe('the page of an entry', () => {
  test('shows how its publisher starts it, with invisible characters', async () => {
    expect(await textOfEntry([npm])).toContain('Started by its publisher with npx @acme/one');
    expect(await textOfEntry([{ ...npm, runtime_hint: 'n\u202epx' }])).toMatch(/publisher with n &lt;U\+202E&gt; px/);
    expect(await textOfEntry([{ ...npm, runtime_hint: null }])).not.toContain('Started by its publisher');
  });
});

describe('the URL of an entry', () => {
  test('has the slash of its name, and no dot segments', () => {
    expect(entryPath('io.example/one')).toBe('/marketplace/io.example/one');
    expect(entryPath('io.example/a?b#c')).toBe('/marketplace/io.example/a%3Fb%23c');
    for (const name of ['../secrets', 'a/../b', 'a//b', '/a'])
      expect(new URL(entryPath(name), 'http://x').pathname).toBe(`/marketplace/${encodeURIComponent(name)}`);
  });
});
