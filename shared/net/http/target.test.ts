import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalPath, isUndecidablePath, parseTarget, splitTarget } from './target.ts';

describe('request target', () => {
  test('splits at the first question mark and keeps every byte', () => {
    expect(splitTarget('/a')).toEqual({ path: '/a', query: null });
    expect(splitTarget('/a?')).toEqual({ path: '/a', query: '' });
    expect(splitTarget('/a%20;x?b=1?c#d')).toEqual({ path: '/a%20;x', query: 'b=1?c#d' });
  });

  test('reads origin-form', () => {
    const origin = { authority: null, path: '//a', query: 'b' };
    expect(parseTarget('//a?b', 'GET')).toEqual({ ok: true, value: origin });
  });

  test('reads absolute-form with https, an empty path as "/"', () => {
    const authority = { host: 'api.example.com', port: 443 };
    const value = { authority, path: '/', query: 'q' };
    expect(parseTarget('HTTPS://API.example.com:443?q', 'GET')).toEqual({ ok: true, value });
  });

  test('reads the asterisk of OPTIONS only', () => {
    expect(parseTarget('*', 'OPTIONS')).toMatchObject({ ok: true, value: { authority: null, path: '*' } });
    expect(parseTarget('*', 'GET').ok).toBe(false);
  });

  test.each([
    '',
    'a',
    'a.example:443',
    'http://a.example/',
    'ftp://a.example/',
    'https:///x',
    'https://u:p@a.example/',
    'https://a b/',
    'https:/a',
  ])('refuses %j', (target) => {
    expect(parseTarget(target, 'GET')).toMatchObject({ ok: false, error: { reason: 'invalid_target' } });
  });

  test('an error does not quote the target, whose query may contain a secret', () => {
    const parsed = parseTarget('ftp://a.example/?token=s3cr3t', 'GET');
    expect(JSON.stringify(parsed)).not.toContain('s3cr3t');
  });
});

describe('invariant 8: the canonical path', () => {
  test.each([
    ['/', '/'],
    ['*', '*'],
    ['/v1/items', '/v1/items'],
    ['/v1/items/', '/v1/items/'],
    ['/v1//items', '/v1/items'],
    ['///v1', '/v1'],
    ['/v1/./items', '/v1/items'],
    ['/v1/x/../items', '/v1/items'],
    ['/v1/x/..', '/v1/'],
    ['/../../v1', '/v1'],
    ['/%76%31/it%65ms', '/v1/items'],
    ['/v1/%2e%2e/items', '/items'],
    ['/v1/%2E/items', '/v1/items'],
    ['/v1/x/..%2fitems', '/v1/items'],
    ['/v1/x%2f..%2fitems', '/v1/items'],
    ['/v1/x/..%5citems', '/v1/items'],
    ['/v1/x/..\\items', '/v1/items'],
    ['/v1/items;jsessionid=1', '/v1/items'],
    ['/v1/items%3bx', '/v1/items'],
    ['/v1/x/..;/items', '/v1/items'],
    ['/v1;a/items;b', '/v1/items'],
    ['/v1/items#x', '/v1/items'],
    ['/group%2fname', '/group%2Fname'],
    ['/a%20b', '/a%20b'],
    ['/100%', '/100%25'],
    ['/%4%31', '/%2541'],
    ['/%252e%252e/x', '/%252e%252e/x'],
    ['/.../x', '/.../x'],
    ['/.well-known', '/.well-known'],
  ])('%s is %s', (path, canonical) => {
    expect(canonicalPath(path)).toBe(canonical);
  });

  const piece = fc.constantFrom(
    '/',
    '.',
    '..',
    '%2e',
    '%2F',
    '%5c',
    '\\',
    ';',
    '%3B',
    'a',
    'B',
    '%61',
    '%',
    '%25',
    '2',
    'e',
    '#',
    '%zz',
    '~',
  );
  const path = fc.array(piece, { maxLength: 14 }).map((pieces) => `/${pieces.join('')}`);

  test('is canonical itself, with nothing left to normalise (property)', () => {
    fc.assert(
      fc.property(path, (text) => {
        const canonical = canonicalPath(text);
        expect(canonicalPath(canonical)).toBe(canonical);
        expect(canonical).not.toMatch(/\/\/|\/\.{1,2}(\/|$)|[;\\#]|%(?![0-9A-F]{2})/i);
      }),
      { numRuns: 500 },
    );
  });

  test('any letter may be escaped without changing it (property)', () => {
    const plain = fc.stringMatching(/^(\/[a-z0-9_~-]{1,6}){1,4}$/);
    fc.assert(
      fc.property(plain, fc.nat(), (text, pick) => {
        const index = 1 + (pick % (text.length - 1));
        const character = text.charAt(index);
        if (character === '/') return;
        const escaped = `%${character.charCodeAt(0).toString(16)}`;
        expect(canonicalPath(text.slice(0, index) + escaped + text.slice(index + 1))).toBe(text);
      }),
    );
  });

  test('escapes are decoded in one pass, so that none creates another', () => {
    expect(canonicalPath(`/${'%2'.repeat(1_000)}%35`)).toBe(`/${'%252'.repeat(1_000)}5`);
  });
});

describe('isUndecidablePath', () => {
  test.each([
    String.raw`/admin\keys`,
    '/admin#/keys',
    '/admin%2Fx/..',
    '/x%2F..%2Fadmin',
    '/admin/%2e%2e%2fkeys',
    '/admin%2f;x/keys',
    '/admin%5Cx%3By',
    '/admin/;/../keys',
    '/admin//../keys',
    '/admin/..;x/keys',
  ])('is true if the order of decoding matters: %s', (path) => {
    expect(isUndecidablePath(path)).toBe(true);
  });

  test.each([
    '/',
    '/projects/group%2Fproject/files/a%2Fb.txt',
    '/a/../b',
    '/a/./b',
    '/a//b',
    '/a;v=1/b',
    '/a%20b/%3Fc',
    '/..a/b..',
    '/a%2F...',
  ])('is false if it does not: %s', (path) => {
    expect(isUndecidablePath(path)).toBe(false);
  });
});
