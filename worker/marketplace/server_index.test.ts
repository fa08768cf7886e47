import { describe, expect, test } from 'vitest';
import { type SearchPosition, type IndexedServer, ServerIndex, type ServerQuery } from './server_index.ts';

const STATE = { change: 1, nowMs: 0 };
const server = (name: string, description = '', more: Partial<IndexedServer> = {}): IndexedServer => {
  return {
    name,
    description,
    title: '',
    identifiers: [],
    transports: ['stdio'],
    registryTypes: ['npm'],
    needsSecret: null,
    state: 'active',
    updatedAt: '',
    ...more,
  };
};
const ALL: Omit<ServerQuery, 'text'> = { transport: null, registryType: null, needsSecret: null, publisher: null };

function indexOf(...servers: readonly IndexedServer[]): ServerIndex {
  const index = new ServerIndex();
  index.replace('mirror', servers, STATE);
  return index;
}

function search(index: ServerIndex, text: string, more: Partial<ServerQuery> = {}): string[] {
  return index.search({ ...ALL, ...more, text }, null, 100).map(({ name }) => name);
}

const folded = (value: string) => value.normalize('NFKC').toLowerCase();

describe('a search', () => {
  test('ranks: whole name, its start, a word in it, elsewhere in it, the description likewise, and the namespace last', () => {
    const index = indexOf(
      server('io.a/x', 'the best of githubs'),
      server('io.b/x', 'mygithub'),
      server('io.c/mygithub'),
      server('io.d/my-github'),
      server('io.e/github-tools'),
      server('io.f/github'),
      server('io.g/other', 'nothing'),
      server('io.github.h/other', 'nothing'),
      server('io.github.i/other', 'for GitHub'),
    );
    expect(search(index, 'GitHub')).toEqual([
      'io.f/github',
      'io.e/github-tools',
      'io.d/my-github',
      'io.c/mygithub',
      'io.a/x',
      'io.github.i/other',
      'io.b/x',
      'io.github.h/other',
    ]);
    expect(search(index, 'io.f/git')).toEqual(['io.f/github']);
    expect(search(index, 'd/my')).toEqual(['io.d/my-github']);
  });

  test("ranks the publisher's proven name first, under a domain before an account, whatever others call themselves", () => {
    const index = indexOf(
      server('io.github.someone/stripe', 'Stripe '.repeat(500), { title: 'Stripe', updatedAt: '2030-01-01T00:00:00Z' }),
      server('com.evil.stripe.deep/stripe'),
      server('app.vercel.stripe/mcp'),
      server('xyz.stripe/mcp'),
      server('com.stripe/mcp', 'Payments', { updatedAt: '2020-01-01T00:00:00Z' }),
      server('com.ｓtripe/mcp'),
    );
    expect(search(index, 'stripe').slice(0, 4)).toEqual([
      'com.stripe/mcp',
      'xyz.stripe/mcp',
      'app.vercel.stripe/mcp',
      'io.github.someone/stripe',
    ]);
  });

  test('a word that is repeated counts once', () => {
    const index = indexOf(
      server('io.a/stuffed', 'github '.repeat(500), { updatedAt: '2020-01-01T00:00:00Z' }),
      server('io.b/honest', 'for github', { updatedAt: '2021-01-01T00:00:00Z' }),
      server('io.github.github/github-mcp-server', 'for issues'),
      server('io.c/my-github'),
      server('io.d/titled', 'x', { title: `${'many products '.repeat(10)}github` }),
    );
    expect(search(index, 'github').slice(0, 4)).toEqual([
      'io.github.github/github-mcp-server',
      'io.c/my-github',
      'io.b/honest',
      'io.a/stuffed',
    ]);
  });

  test('finds words that are apart, in any order, and written as one', () => {
    const index = indexOf(
      server('io.a/github-mcp-server', 'manage repos and issues'),
      server('io.b/mcp-server-filesystem'),
      server('io.c/file-systems'),
      server('io.d/ChromeDevTools'),
      server('io.e/other', 'unhub missues'),
    );
    expect(search(index, 'issues github')).toEqual(['io.a/github-mcp-server']);
    expect(search(index, 'github mcp server for issues')).toEqual(['io.a/github-mcp-server']);
    expect(search(index, 'file system')).toEqual(['io.b/mcp-server-filesystem', 'io.c/file-systems']);
    expect(search(index, 'filesystem')).toEqual(['io.b/mcp-server-filesystem', 'io.c/file-systems']);
    expect(search(index, 'dev tools')).toEqual(['io.d/ChromeDevTools']);
    expect(search(index, 'github storage')).toEqual(['io.a/github-mcp-server']);
  });

  test.each(['postgress', 'postgrse', 'potsgres', 'postges', 'kubernets', 'kuberentes', 'atlasian', 'githb'])(
    'finds what was meant by %s',
    (text) => {
      const meant = text.startsWith('po') ? 'postgres' : text.startsWith('ku') ? 'kubernetes' : '';
      const named = meant === '' ? (text === 'githb' ? 'io.github.github/x' : 'com.atlassian/x') : `io.a/mcp-${meant}`;
      const index = indexOf(server(named), server('io.b/other', `stuffed with ${text}`), server('io.c/mail'));
      expect(search(index, text)[0]).toBe(named);
    },
  );

  test('a known word is not corrected', () => {
    const index = indexOf(server('io.a/notion'), server('io.b/motion'), server('io.c/nation'), server('io.d/slim'));
    expect(search(index, 'notion')).toEqual(['io.a/notion']);
    expect(search(index, 'slam')).toEqual(['io.d/slim']);
    expect(search(index, 'sli')).toEqual(['io.d/slim']);
    index.update([], ['io.d/slim'], STATE);
    expect(search(index, 'slam')).toEqual([]);
  });

  test('among equals the newest release comes first, and deprecated servers last', () => {
    const index = indexOf(
      server('io.a/mail', '', { updatedAt: '2025-01-01T00:00:00Z' }),
      server('io.b/mail', '', { updatedAt: '2025-03-01T00:00:00Z', state: 'deprecated' }),
      server('io.c/mail', '', { updatedAt: '2025-02-01T00:00:00Z' }),
      server('io.d/mail'),
    );
    expect(search(index, 'mail')).toEqual(['io.c/mail', 'io.a/mail', 'io.b/mail', 'io.d/mail']);
    expect(search(index, '')[0]).toBe('io.c/mail');
  });

  test("finds titles and packages; a package of its publisher's comes before others that list it", () => {
    const index = indexOf(
      server('io.github.upstash/context7', '', { identifiers: ['@upstash/context7-mcp'] }),
      server('io.a/thief', '', { identifiers: ['@upstash/context7-mcp'], updatedAt: '2030-01-01T00:00:00Z' }),
      server('io.b/x', '', { title: 'Desktop Commander' }),
      server('io.c/liar', 'for you\n@upstash/context7-mcp\n'),
    );
    expect(search(index, '@upstash/context7-mcp')).toEqual(['io.github.upstash/context7', 'io.a/thief', 'io.c/liar']);
    expect(search(index, 'desktop commander')).toEqual(['io.b/x']);
  });

  test('every entry whose name or description contains the text is found', () => {
    const parts = ['git', 'hub', ' ', '-', 'é', 'İ', '/', 'data', 'base', '.', '_', 'ﬁ', '文', '\n', 'mcp'];
    const part = (seed: number) => parts[seed % parts.length] ?? '';
    const text = (seed: number) => [1, 7, 31, 101, 13].map((by) => part((seed * by) >>> 2)).join('');
    const servers = Array.from({ length: 400 }, (_, at) => server(`io.n${at}/${text(at + 3)}`, text(at * 17 + 5)));
    const index = indexOf(...servers);
    for (let seed = 0; seed < 120; seed += 1) {
      const wanted = text(seed * 5 + 2).slice(0, 1 + (seed % 9));
      const found = new Set(index.search({ ...ALL, text: wanted }, null, 1_000).map(({ name }) => name));
      const first = index.search({ ...ALL, text: wanted }, null, 3).map(({ name }) => name);
      expect([wanted, first]).toEqual([wanted, [...found].slice(0, 3)]);
      const contain = servers.filter(({ name, description }) =>
        [name, description].some((each) => folded(each).includes(folded(wanted))),
      );
      expect([wanted, contain.filter(({ name }) => !found.has(name))]).toEqual([wanted, []]);
    }
  });

  test('does not match across the name and the description', () => {
    expect(search(indexOf(server('io.a/abc', 'def')), 'abcdef')).toEqual([]);
  });

  test.each([
    ['İSTANBUL', 'istanbul'],
    ['café', 'cafe\u0301'],
    ['ﬁle', 'file'],
    ['ＡＢＣ', 'abc'],
  ])('finds %s by %s, which Unicode considers equal', (one, other) => {
    const index = indexOf(server('io.a/x', one));
    expect(
      search(index, other.normalize('NFKC') === one ? one : other).length + search(index, one).length,
    ).toBeGreaterThan(0);
    expect(search(index, one)).toEqual(['io.a/x']);
  });

  test.each(['.*', '%', '_', '[', '\\', "'", '"', '(', '\u0000'])('treats %j as literal text', (text) => {
    const index = indexOf(server('io.a/plain', 'words'), server('io.b/odd', `with ${text} in it`));
    expect(search(index, text)).toEqual(['io.b/odd']);
  });

  test('can be filtered by transport and package registry, which match only as whole words', () => {
    const index = indexOf(
      server('io.a/local'),
      server('io.b/remote', '', { transports: ['sse'], registryTypes: [] }),
      server('io.c/both', '', { transports: ['stdio', 'streamable-http'], registryTypes: ['npm-like', 'oci'] }),
    );
    expect(search(index, '', { transport: 'stdio' })).toEqual(['io.a/local', 'io.c/both']);
    expect(search(index, '', { registryType: 'npm' })).toEqual(['io.a/local']);
    expect(search(index, '', { transport: 'sse', registryType: 'oci' })).toEqual([]);
  });

  test('can be filtered by secret and by publisher, which matches only as a whole', () => {
    const index = indexOf(
      server('com.acme/one', '', { needsSecret: true }),
      server('com.acme.more/two', '', { needsSecret: false }),
      server('com.acme/three', ''),
    );
    expect(search(index, '', { needsSecret: true })).toEqual(['com.acme/one']);
    expect(search(index, '', { needsSecret: false })).toEqual(['com.acme.more/two']);
    expect(search(index, '', { publisher: 'Com.Acme' })).toEqual(['com.acme/one', 'com.acme/three']);
    expect(search(index, '', { publisher: 'com' })).toEqual([]);
  });

  test('continues after a place, whatever was added or deleted meanwhile', () => {
    const servers = Array.from({ length: 40 }, (_, at) => server(`io.n${String(at).padStart(2, '0')}/mcp`, 'weather'));
    const index = indexOf(...servers);
    const names: string[] = [];
    let after: SearchPosition | null = null;
    for (let turn = 0; turn < 10; turn += 1) {
      const positions: readonly SearchPosition[] = index.search({ ...ALL, text: 'weather' }, after, 7);
      names.push(...positions.map(({ name }) => name));
      after = positions.at(-1) ?? after;
      index.update([server(`io.a${turn}/before`, 'weather')], [`io.n0${turn}/mcp`], STATE);
    }
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => name.startsWith('io.n')).length).toBeGreaterThanOrEqual(35);
  });
});

test('a copy belongs to one mirror, and knows which write it has', () => {
  const index = indexOf(server('io.a/x'));
  expect([index.stateOf('mirror')?.change, index.stateOf('other'), index.size]).toEqual([1, null, 1]);
  index.update([server('io.b/x')], ['io.a/x'], { change: 7, nowMs: 3 });
  expect([index.stateOf('mirror')?.change, search(index, '')]).toEqual([7, ['io.b/x']]);
  index.replace('other', [], STATE);
  expect([index.stateOf('mirror'), index.size]).toEqual([null, 0]);
});
