import { expect, test } from 'vitest';
import { proxyOrigin } from '../shared/net/upstream_proxy.ts';
import { readConfig } from './config.ts';

const FLAGS = ['--control', 'http://127.0.0.1:7420', '--port', '7421'];

test.each(['http://127.0.0.1:7421', 'http://localhost:7421', 'http://[::1]:7421'])(
  'the upstream proxy is not the sidecar itself: %s',
  (url) => {
    const config = readConfig(FLAGS, { SVC_UPSTREAM_PROXY: url }, 'host');
    expect(config).toEqual({
      ok: false,
      error: ['SVC_UPSTREAM_PROXY is this sidecar itself: name another proxy'],
    });
  },
);

test('the upstream proxy may be another program of this machine', () => {
  const config = readConfig(FLAGS, { SVC_UPSTREAM_PROXY: 'http://127.0.0.1:3128' }, 'host');
  expect(config.ok && config.value.proxy && proxyOrigin(config.value.proxy)).toBe('http://127.0.0.1:3128');
});

test.each([
  ['a.test:127.0.0.1', 'a.test', '127.0.0.1', 443],
  ['a.test:127.0.0.1:8443', 'a.test', '127.0.0.1', 8443],
  ['A.test:8443:127.0.0.1', 'a.test:8443', '127.0.0.1', 8443],
  ['a.test:8443:127.0.0.1:9443', 'a.test:8443', '127.0.0.1', 9443],
  ['a.test:443:127.0.0.1', 'a.test', '127.0.0.1', 443],
  ['a.test:8443:[::1]', 'a.test:8443', '::1', 8443],
  ['http://a.test:127.0.0.1', 'http://a.test', '127.0.0.1', 80],
])('--resolve %s is for %s', (text, host, address, port) => {
  const config = readConfig([...FLAGS, '--resolve', text], {}, 'host');
  expect(config.ok ? config.value.pinned.get(host) : config.error).toEqual({ address, port });
});

test.each([
  'a.test:8443',
  'a.test:80:127.0.0.1',
  'a.test:0:127.0.0.1',
  'a.test:70000:127.0.0.1',
  'http://a.test:8080:127.0.0.1',
])('--resolve %s is refused', (text) => {
  expect(readConfig([...FLAGS, '--resolve', text], {}, 'host')).toMatchObject({
    ok: false,
    error: [expect.stringMatching(/^--resolve is .*HOST:PORT for a host on another port/)],
  });
});

test('a proxy that cannot be used stops the start, and its password is not quoted', () => {
  const config = readConfig(FLAGS, { HTTPS_PROXY: 'socks5://worker:planted@proxy.test' }, 'host');
  expect(config).toMatchObject({ ok: false, error: [expect.stringMatching(/^HTTPS_PROXY is not an http:/)] });
  expect(JSON.stringify(config)).not.toContain('planted');
});
