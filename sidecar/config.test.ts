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

test('a proxy that cannot be used stops the start, and its password is not quoted', () => {
  const config = readConfig(FLAGS, { HTTPS_PROXY: 'socks5://worker:planted@proxy.test' }, 'host');
  expect(config).toMatchObject({ ok: false, error: [expect.stringMatching(/^HTTPS_PROXY is not an http:/)] });
  expect(JSON.stringify(config)).not.toContain('planted');
});
