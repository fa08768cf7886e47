import { describe, expect, test } from 'vitest';
import { type SearchPosition, type IndexedServer, ServerIndex, type ServerQuery } from './server_index.ts';

const STATE = { change: 1, nowMs: 0 };
const server = (name: string, description = '', more: Partial<IndexedServer> = {}): IndexedServer => {
  return { name, description, transports: ['stdio'], registryTypes: ['npm'], ...more };
};
const ALL: Omit<ServerQuery, 'text'> = { transport: null, registryType: null };

function indexOf(...servers: readonly IndexedServer[]): ServerIndex {
  const index = new ServerIndex();
  index.replace('mirror', servers, STATE);
  return index;
}

function search(index: ServerIndex, text: string, more: Partial<ServerQuery> = {}): string[] {
  return index.search({ ...ALL, ...more, text }, null, 100).map(({ name }) => name);
}

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
