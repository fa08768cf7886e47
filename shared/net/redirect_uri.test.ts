import { describe, expect, test } from 'vitest';
import { isLoopbackRedirect, isSameRedirect, redirectUriProblem } from './redirect_uri.ts';

describe('redirect URIs', () => {
  test.each([
    'https://client.example/callback',
    'https://client.example',
    'https://client.example:8443/cb?tenant=a',
    'http://127.0.0.1:4711/cb',
    'http://localhost/cb',
    'http://[::1]:9/cb',
  ])('accepts %s', (uri) => expect(redirectUriProblem(uri)).toBeNull());

  test.each([
    'http://client.example/cb',
    'http://127.0.0.1.client.example/cb',
    'http://localhost.client.example/cb',
    'http://0x7f.1/cb',
    'https://client.example/cb#',
    'https://client.example/cb#x',
    'https://user@client.example/cb',
    'https://good.example@evil.example/cb',
    'https://client.example\\@evil.example/cb',
    'https://CLIENT.example/cb',
    'https://client.example:443/cb',
    'https://client.example/a/../cb',
    'https://client.example/cb?code=x',
    'https://client.example/cb?state=x',
    ' https://client.example/cb',
    'https://client.example/c b',
    'https://clïent.example/cb',
    'javascript:alert(1)',
    'data:text/html,x',
    'cursor://callback',
    '//client.example/cb',
    '',
    `https://client.example/${'a'.repeat(2_000)}`,
  ])('refuses %s', (uri) => expect(redirectUriProblem(uri)).not.toBeNull());

  test('are compared as text, but for the port of a loopback address', () => {
    expect(isSameRedirect('https://a.example/cb', 'https://a.example/cb')).toBe(true);
    expect(isSameRedirect('http://127.0.0.1/cb', 'http://127.0.0.1:50123/cb')).toBe(true);
    expect(isSameRedirect('http://localhost:1/cb?x=1', 'http://localhost:2/cb?x=1')).toBe(true);
  });

  test.each([
    ['https://a.example/cb', 'https://a.example/cb/'],
    ['https://a.example/cb', 'https://a.example/cb?x=1'],
    ['https://a.example/cb', 'https://a.example:8443/cb'],
    ['https://a.example/cb', 'https://b.a.example/cb'],
    ['http://127.0.0.1/cb', 'http://localhost/cb'],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:1/cb/more'],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:1@evil.example/cb'],
    ['http://127.0.0.1/cb', 'https://127.0.0.1:1/cb'],
    ['http://127.0.0.1/cb', 'http://127.0.0.1:1/cb#x'],
  ])('%s is not %s', (registered, asked) => expect(isSameRedirect(registered, asked)).toBe(false));

  test('tell whether they lead to the machine of the browser', () => {
    expect(isLoopbackRedirect('http://localhost:1/cb')).toBe(true);
    expect(isLoopbackRedirect('https://localhost/cb')).toBe(false);
    expect(isLoopbackRedirect('https://a.example/cb')).toBe(false);
  });
});
