import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type CompanyProxy, startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { listen } from '../../e2e/support/tls_upstream.ts';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { DialerOptions } from './dialer.ts';
import { CARRIED, createPlainDialer } from './plain_dialer.ts';

const HOST = 'deb.example.test';
let upstream: Server;
let port: number;
let proxy: CompanyProxy;

beforeAll(async () => {
  upstream = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => void socket.write(`got ${data.toString()}`));
  });
  port = await listen(upstream);
  proxy = await startCompanyProxy({ leadTo: () => port });
});
afterAll(async () => {
  upstream.close();
  await proxy.close();
});
afterEach(() => {
  proxy.heads.length = 0;
});

function dial(host: string, change: Partial<DialerOptions> = {}, publicOnly = false) {
  return createPlainDialer(optionsWith(change)).dial(host, publicOnly).connected;
}

function dialCarried(host: string, change: Partial<DialerOptions> = {}, publicOnly = false) {
  return createPlainDialer(optionsWith(change), CARRIED).dial(host, publicOnly).connected;
}

function optionsWith(change: Partial<DialerOptions>): DialerOptions {
  const fixed = { roots: [], pinned: new Map(), denyPrivate: false, timeoutSeconds: 5, limits: DEFAULT_LIMITS };
  return { ...fixed, ...change };
}

const pinned = () => new Map([[`http://${HOST}`, { address: '127.0.0.1', port }]]);

async function answerOf(dialled: Awaited<ReturnType<typeof dial>>): Promise<string> {
  if (!dialled.ok) return dialled.error.reason;
  dialled.value.write('hello');
  const got = String(await dialled.value.nextChunk());
  dialled.value.destroy();
  return got;
}

function throughProxy(more: Record<string, string> = {}) {
  const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: proxy.url, ...more });
  return read.ok ? read.value : null;
}

describe('a connection for plain http', () => {
  test('goes to the address that stands for the host over plain http, and not to that for https', async () => {
    expect(await answerOf(await dial(HOST, { pinned: pinned() }))).toBe('got hello');
    const forTls = new Map([[HOST, { address: '127.0.0.1', port }]]);
    expect(await answerOf(await dial(HOST, { pinned: forTls }))).toBe('upstream_unreachable');
  });

  test.each(['localhost', '127.0.0.1', '[::1]'])(
    'to %s is refused where only public addresses are allowed',
    async (host) => {
      const dialled = await dial(host, {}, true);
      if (dialled.ok) throw new Error('it was dialled');
      expect(dialled.error.reason).toBe('egress_address_not_allowed');
      expect(dialled.error.message).toContain(`--plain-http ${host}`);
      expect(dialled.error.message).not.toContain('bind');
    },
  );

  test.each(['localhost', '127.0.0.1', '[::1]', '169.254.169.254', '[::ffff:169.254.169.254]'])(
    'to %s is refused everywhere, because no certificate says who that is',
    async (host) => {
      const dialled = await dial(host);
      if (dialled.ok) throw new Error('it was dialled');
      expect(dialled.error.reason).toBe('egress_address_not_allowed');
      expect(dialled.error.message).toContain(`--resolve http://${host}:ADDRESS`);
    },
  );

  test('to this machine is refused with --deny-private-upstreams', async () => {
    expect(await answerOf(await dial('localhost', { denyPrivate: true }))).toBe('upstream_unreachable');
    expect(await answerOf(await dial(HOST, { denyPrivate: true, pinned: pinned() }))).toBe('upstream_unreachable');
  });

  test('asks the upstream proxy for port 80 of the host with CONNECT', async () => {
    expect(await answerOf(await dial(HOST, { proxy: throughProxy() }))).toBe('got hello');
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:80 HTTP/1.1\r\nHost: ${HOST}:80\r\n\r\n`]);
  });

  test('is not made through a proxy that could lead to a private address', async () => {
    expect(await answerOf(await dial(HOST, { proxy: throughProxy() }, true))).toBe('egress_address_not_allowed');
    const isPublic = throughProxy({ SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' });
    expect(await answerOf(await dial(HOST, { proxy: isPublic }, true))).toBe('got hello');
    expect(proxy.heads).toHaveLength(1);
  });
});

const forTls = () => new Map([[HOST, { address: '127.0.0.1', port }]]);

describe('a connection that is carried unread', () => {
  test('goes to the address that stands for the host over https, and not to that for plain http', async () => {
    expect(await answerOf(await dialCarried(HOST, { pinned: forTls() }))).toBe('got hello');
    expect(await answerOf(await dialCarried(HOST, { pinned: pinned() }))).toBe('upstream_unreachable');
  });

  test('to this machine is refused everywhere, because no certificate is checked here', async () => {
    const dialled = await dialCarried('localhost');
    if (dialled.ok) throw new Error('it was dialled');
    expect(dialled.error.reason).toBe('egress_address_not_allowed');
    expect(dialled.error.message).toContain('nothing is carried unread');
    expect(dialled.error.message).toContain('--resolve localhost:ADDRESS');
  });

  test('to a private address is refused where only public addresses are allowed, with the one way to name the host', async () => {
    const dialled = await dialCarried('localhost', {}, true);
    if (dialled.ok) throw new Error('it was dialled');
    expect(dialled.error.reason).toBe('egress_address_not_allowed');
    expect(dialled.error.message).toContain('--allow localhost');
    expect(dialled.error.message).not.toContain('bind');
    expect(await answerOf(await dialCarried(HOST, { pinned: forTls() }, true))).toBe('got hello');
  });

  test('to a private address is refused with --deny-private-upstreams', async () => {
    expect(await answerOf(await dialCarried('localhost', { denyPrivate: true }))).toBe('upstream_unreachable');
    const refused = await dialCarried(HOST, { denyPrivate: true, pinned: forTls() });
    expect(await answerOf(refused)).toBe('upstream_unreachable');
  });

  test('asks the upstream proxy for port 443 of the host with CONNECT', async () => {
    expect(await answerOf(await dialCarried(HOST, { proxy: throughProxy() }))).toBe('got hello');
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`]);
  });

  test('is not made through a proxy that could lead to a private address', async () => {
    const refused = await dialCarried(HOST, { proxy: throughProxy() }, true);
    expect(await answerOf(refused)).toBe('egress_address_not_allowed');
    expect(await answerOf(await dialCarried(HOST, { proxy: throughProxy(), denyPrivate: true }))).toBe(
      'upstream_unreachable',
    );
    expect(proxy.heads).toEqual([]);
    const isPublic = throughProxy({ SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' });
    expect(await answerOf(await dialCarried(HOST, { proxy: isPublic }, true))).toBe('got hello');
  });

  test('is not made when it was cancelled', async () => {
    const dialling = createPlainDialer(optionsWith({ pinned: forTls() }), CARRIED).dial(HOST, false);
    dialling.cancel();
    expect(await answerOf(await dialling.connected)).toBe('upstream_unreachable');
  });
});
