import { describe, expect, test } from 'vitest';
import {
  connectHead,
  ConnectReply,
  isAboutTarget,
  noReplyInTime,
  goesThrough,
  proxyOrigin,
  readUpstreamProxy,
  type UpstreamProxy,
  upstreamProxyVariables,
} from './upstream_proxy.ts';

const SESSION = 'http://ses_01hzy3v7q8w9x0y1z2a3b4c5d6:token@127.0.0.1:7421';

function proxyOf(env: Record<string, string>): UpstreamProxy {
  const found = readUpstreamProxy(env);
  if (!found.ok || found.value === null) throw new Error(JSON.stringify(found));
  return found.value;
}

const proxyAt = (url: string, more: Record<string, string> = {}) => proxyOf({ SVC_UPSTREAM_PROXY: url, ...more });
const bytes = (text: string) => new TextEncoder().encode(text);
const read = (text: string, url = 'http://p.test:1') => new ConnectReply(proxyAt(url)).read(bytes(text));

describe('the upstream proxy of an environment', () => {
  test.each([
    [{}, null],
    [{ HTTPS_PROXY: '' }, null],
    [{ HTTP_PROXY: 'http://p.test:1', ALL_PROXY: 'http://p.test:1' }, null],
    [{ HTTPS_PROXY: 'http://p.test:3128' }, 'http://p.test:3128'],
    [{ https_proxy: 'p.test:3128' }, 'http://p.test:3128'],
    [{ https_proxy: 'http://lower.test:1', HTTPS_PROXY: 'http://upper.test:1' }, 'http://lower.test:1'],
    [{ SVC_UPSTREAM_PROXY: 'https://own.test', HTTPS_PROXY: 'http://p.test:1' }, 'https://own.test:443'],
    [{ SVC_UPSTREAM_PROXY: 'off', HTTPS_PROXY: 'http://p.test:1' }, null],
    [{ HTTPS_PROXY: SESSION }, null],
    [{ https_proxy: SESSION, HTTPS_PROXY: 'http://p.test:1' }, 'http://p.test:1'],
    [{ SVC_UPSTREAM_PROXY: 'http://[2001:DB8::1]' }, 'http://[2001:db8::1]:80'],
  ])('of %j is %s', (env: Record<string, string>, expected) => {
    const found = readUpstreamProxy(env);
    expect(found.ok && found.value && proxyOrigin(found.value)).toBe(expected);
  });

  test.each([
    ['socks5://user:planted-password@p.test:1080', 'not an http:// or https:// proxy'],
    ['http://user:planted-password@p.test:1/path', 'after the port'],
    ['http://user:planted%password@p.test:1', '%25'],
    ['http://us%3Aer:planted-password@p.test:1', 'colon'],
    ['http://user:planted-password%0A@p.test:1', 'control character'],
    ['http://user:planted-password@p.test:99999', 'not a URL'],
    ['http://user:planted-password@p.test:0', 'port 0'],
    ['', 'not a URL'],
  ])('is refused without its password: %s', (url, problem) => {
    const found = readUpstreamProxy({ SVC_UPSTREAM_PROXY: url });
    if (found.ok) throw new Error('it was accepted');
    expect(found.error).toContain('SVC_UPSTREAM_PROXY');
    expect(found.error).toContain(problem);
    expect(found.error).not.toContain('planted');
  });

  test('says how svc alone can do without the proxy of other programs', () => {
    const found = readUpstreamProxy({ HTTPS_PROXY: 'socks5://p.test' });
    expect(!found.ok && found.error).toMatch(/^HTTPS_PROXY .* set SVC_UPSTREAM_PROXY to another proxy, or to off$/);
  });

  test('never prints its credentials', () => {
    const proxy = proxyAt('http://user:planted@p.test:1');
    expect(`${JSON.stringify(proxy)} ${proxyOrigin(proxy)}`).not.toMatch(/planted|dXNlcjpwbGFudGVk/);
  });

  test('is the same once its variables were passed on, and none of a session is', () => {
    const env = { HTTPS_PROXY: 'http://u:p@p.test:1', no_proxy: 'a.test', SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' };
    const passed = proxyOf(upstreamProxyVariables(env));
    expect({ ...passed, source: '' }).toEqual({ ...proxyOf(env), source: '' });
    expect(upstreamProxyVariables({ HTTPS_PROXY: SESSION, NO_PROXY: 'a.test' })).toEqual({});
    const off = upstreamProxyVariables({ SVC_UPSTREAM_PROXY: 'off', HTTPS_PROXY: 'http://p.test:1' });
    expect(readUpstreamProxy(off)).toEqual({ ok: true, value: null });
  });
});

describe('a connection', () => {
  test.each([
    ['api.example.test', true],
    ['10.0.0.7', true],
    ['[2001:db8::1]', true],
    ['exempt.test', false],
    ['localhost', false],
    ['svc.localhost', false],
    ['127.1.2.3', false],
    ['[::1]', false],
    ['localhost.example.test', true],
  ])('to %s goes through the proxy: %s', (host, expected) => {
    expect(goesThrough(proxyAt('http://p.test:1', { NO_PROXY: 'exempt.test' }), { host, port: 443 })).toBe(expected);
  });

  test('is asked for with the host and the credentials alone', () => {
    const target = { host: 'api.example.test', port: 443 };
    const lines = 'CONNECT api.example.test:443 HTTP/1.1\r\nHost: api.example.test:443\r\n';
    expect(connectHead(proxyAt('http://p.test:1'), target)).toBe(`${lines}\r\n`);
    // "ünï" and "p@ss%:word", as RFC 7617 writes them in UTF-8.
    const head = connectHead(proxyAt('http://%C3%BCn%C3%AF:p%40ss%25%3Aword@p.test:1'), target);
    expect(head).toBe(`${lines}Proxy-Authorization: Basic w7xuw686cEBzcyU6d29yZA==\r\n\r\n`);
  });
});

describe('the reply to CONNECT', () => {
  test.each(['HTTP/1.1 200 Connection established\r\n\r\n', 'HTTP/1.0 200\r\nVia: x\r\n\r\n', 'HTTP/1.1 204 \r\n\r\n'])(
    'opens the tunnel: %j',
    (head) => {
      const opened = read(`${head}first bytes`);
      expect(opened?.ok === true && new TextDecoder().decode(opened.value.rest)).toBe('first bytes');
    },
  );

  test('is read in any pieces, after interim heads', () => {
    const reply = new ConnectReply(proxyAt('http://p.test:1'));
    const text = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n';
    const answers = Array.from(text, (character) => reply.read(bytes(character)));
    expect(answers.slice(0, -1).every((answer) => answer === null)).toBe(true);
    expect(answers.at(-1)).toMatchObject({ ok: true, value: { rest: new Uint8Array() } });
  });

  test.each([
    ['HTTP/1.1 407 x\r\n\r\n', 'asks for a user name and a password (407)'],
    ['HTTP/1.1 407 x\r\nProxy-Authenticate: Negotiate\r\nproxy-authenticate: NTLM\r\n\r\n', 'svc does not know'],
    [
      'HTTP/1.1 407 x\r\nProxy-Authenticate: NTLM, Basic realm="x"\r\n\r\n',
      'asks for a user name and a password (407)',
    ],
    ['HTTP/1.1 401 x\r\nWWW-Authenticate: Basic\r\n\r\n', 'asks for a user name and a password (401)'],
    ['HTTP/1.1 403 x\r\n\r\n', 'does not allow this connection (403)'],
    ['HTTP/1.1 502 x\r\n\r\n', 'could not reach it (502)'],
    ['HTTP/1.1 500 x\r\n\r\n', 'could not reach it (500)'],
    ['HTTP/1.1 302 x\r\nLocation: http://login.test\r\n\r\n', 'refused the connection (302)'],
    ['HTTP/2 200\r\n\r\n', 'does not answer in HTTP/1.1'],
    ['SSH-2.0-x\r\n\r\n', 'does not answer in HTTP/1.1'],
    ['HTTP/1.1 099 x\r\n\r\n', 'does not answer in HTTP/1.1'],
  ])('refuses: %j', (text, problem) => {
    const answer = read(text);
    expect(answer?.ok === false && answer.error).toContain(problem);
  });

  test('says whether the password is missing or wrong, and quotes nothing of the proxy', () => {
    const answer = read('HTTP/1.1 407 planted\r\nX: planted\r\n\r\n', 'http://u:secret@p.test:1');
    expect(answer).toEqual({
      ok: false,
      error: 'the upstream proxy does not accept the user name and password (407)',
    });
  });

  test.each([
    ['HTTP/1.1 403 x\r\n\r\n', true],
    ['HTTP/1.1 500 x\r\n\r\n', true],
    ['HTTP/1.1 504 x\r\n\r\n', true],
    ['HTTP/1.1 407 x\r\n\r\n', false],
    ['HTTP/1.1 302 x\r\n\r\n', false],
    ['SSH-2.0-x\r\n\r\n', false],
  ])('%j: the proxy may open other hosts: %s', (text, isExpected) => {
    const answer = read(text);
    expect(answer?.ok === false && isAboutTarget(answer.error)).toBe(isExpected);
  });

  test('no reply in time tells a proxy that waits for the host from one that is not there', () => {
    expect([isAboutTarget(noReplyInTime(true)), isAboutTarget(noReplyInTime(false))]).toEqual([true, false]);
  });

  test('is limited, also if it is all interim heads', () => {
    for (const piece of ['x'.repeat(1_000), 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(40)]) {
      const reply = new ConnectReply(proxyAt('http://p.test:1'));
      const answers = Array.from({ length: 20 }, () => reply.read(bytes(piece)));
      expect(answers.find((answer) => answer !== null)).toMatchObject({ ok: false });
    }
    const long = read(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(long?.ok === false && long.error).toContain('more than 16384 bytes');
    expect(read(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(20_000)}`)).toMatchObject({ ok: true });
  });
});
