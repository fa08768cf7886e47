import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type CompanyProxy, startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { createTestCa, type TestCa } from '../../e2e/support/test_ca.ts';
import { listen, reply, startTlsUpstream, type TlsUpstream } from '../../e2e/support/tls_upstream.ts';
import { headerField, type RequestHead } from '../../shared/net/http/http1_head.ts';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { readUpstreamProxy, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { createDialer, type DialerOptions } from './dialer.ts';
import { TunnelLanes } from './lanes.ts';
import { UpstreamSession } from './upstream_session.ts';

const HOST = 'api.example.test';
let ca: TestCa;
let upstream: TlsUpstream;
const proxies: CompanyProxy[] = [];

beforeAll(async () => {
  ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([HOST]));
});
afterAll(() => upstream.close());
afterEach(async () => {
  upstream.reset();
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(isSecure = false): Promise<CompanyProxy> {
  const certificate = isSecure ? { certificate: await ca.issue(['localhost']) } : {};
  const proxy = await startCompanyProxy({ leadTo: () => upstream.port, ...certificate });
  proxies.push(proxy);
  return proxy;
}

function settingsOf(url: string, more: Record<string, string> = {}): UpstreamProxy {
  const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: url, ...more });
  if (!read.ok || read.value === null) throw new Error(JSON.stringify(read));
  return read.value;
}

function dialer(proxy: UpstreamProxy, change: Partial<DialerOptions> = {}) {
  const fixed = { roots: [ca.pem], pinned: new Map(), proxy, denyPrivate: false, timeoutSeconds: 5 };
  return createDialer({ ...fixed, limits: DEFAULT_LIMITS, ...change });
}

async function replyOver(stream: { write(text: string): unknown }, next: () => Promise<unknown>): Promise<string> {
  stream.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  return String(await next());
}

describe('a connection through the upstream proxy', () => {
  test.each([
    ['http', false],
    ['https', true],
  ])('is verified for its host: an %s proxy', async (_, isSecure) => {
    const proxy = await startProxy(isSecure);
    const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
    if (!dialled.ok) throw new Error(dialled.error.message);
    const { stream } = dialled.value;
    expect(await replyOver(stream, () => dialled.value.nextChunk())).toContain('HTTP/1.1 200');
    expect(upstream.last().serverName).toBe(HOST);
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`]);
    const gone = new Promise((resolve) => [...proxy.open][0]?.once('close', resolve));
    dialled.value.destroy();
    await gone;
  });

  test('is asked for with the port of the host, and its certificate is for the name', async () => {
    const proxy = await startProxy(false);
    const dialled = await dialer(settingsOf(proxy.url)).dial(`${HOST}:8443`).connected;
    if (!dialled.ok) throw new Error(dialled.error.message);
    await replyOver(dialled.value.stream, () => dialled.value.nextChunk());
    expect(upstream.last().serverName).toBe(HOST);
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:8443 HTTP/1.1\r\nHost: ${HOST}:8443\r\n\r\n`]);
    dialled.value.destroy();
  });

  test('carries the credentials of the setting, and says nothing of them when they are refused', async () => {
    const proxy = await startProxy();
    proxy.answer = (socket) => void socket.end('HTTP/1.1 407 planted\r\nProxy-Authenticate: Basic\r\n\r\n');
    const url = proxy.url.replace('//', '//worker:planted-word@');
    const refused = await dialer(settingsOf(url)).dial(HOST).connected;
    expect(proxy.heads[0]).toContain(`\r\nProxy-Authorization: Basic ${btoa('worker:planted-word')}\r\n`);
    expect(refused).toEqual({
      ok: false,
      error: {
        reason: 'upstream_proxy_failed',
        message: `${HOST} was not reached: the upstream proxy does not accept the user name and password (407)`,
      },
    });
  });

  test('fails if the proxy answers in place of the host: its certificate is not the host’s', async () => {
    const stranger = await createTestCa();
    const trap = await startTlsUpstream(await stranger.issue([HOST]));
    const other = await startTlsUpstream(await ca.issue(['other.example.test']));
    for (const { port } of [trap, other]) {
      const proxy = await startCompanyProxy({ leadTo: () => port });
      proxies.push(proxy);
      const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
      expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_tls_failed' } });
    }
    await Promise.all([trap.close(), other.close()]);
  });

  test('fails if the certificate of an https proxy is not valid for it', async () => {
    const certificate = await ca.issue(['proxy.example.test']);
    const proxy = await startCompanyProxy({ leadTo: () => upstream.port, certificate });
    proxies.push(proxy);
    const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
    expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_proxy_failed' } });
    expect(proxy.heads).toEqual([]);
  });

  test.each<[string, (socket: Socket) => unknown]>([
    ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')],
    ['closes at once', (socket) => socket.end()],
    ['resets', (socket) => socket.resetAndDestroy()],
    ['speaks no HTTP', (socket) => socket.write('220 mail.example.test ESMTP\r\n\r\n')],
    ['never ends its head', (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`)],
    ['says nothing', () => undefined],
    ['sends interim heads only', (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n')],
  ])('fails with its own reason and is closed: a proxy that %s', async (_, answer) => {
    const proxy = await startProxy();
    proxy.answer = (socket) => void answer(socket);
    const dialled = await dialer(settingsOf(proxy.url), { timeoutSeconds: 0.5 }).dial(HOST).connected;
    expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_proxy_failed' } });
    for (const socket of proxy.open) await once(socket, 'close');
  });

  test('says that a proxy which accepts the connection may wait for the host itself', async () => {
    const proxy = await startProxy();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    proxy.answer = () => void vi.advanceTimersByTime(600_000);
    const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
    vi.useRealTimers();
    expect(dialled).toMatchObject({
      error: { message: expect.stringContaining('did not answer in time: it may be unable to reach the host') },
    });
  });

  test('has one time limit for the proxy and the host', async () => {
    const proxy = await startProxy();
    proxy.answer = (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n');
    const dialled = await dialer(settingsOf(proxy.url), { timeoutSeconds: 0.3 }).dial(HOST).connected;
    expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_unreachable' } });
  });

  test('fails if nothing listens where the proxy should be', async () => {
    const proxy = await startProxy();
    await proxy.close();
    const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
    expect(dialled.ok ? '' : dialled.error.message).toContain('the upstream proxy cannot be reached (ECONNREFUSED)');
  });

  test('keeps bytes that follow the head of the reply in one packet', async () => {
    const proxy = await startProxy();
    proxy.answer = (socket) => {
      // Not TLS: that these bytes are read is seen by the error that they cause.
      socket.write('HTTP/1.1 200 OK\r\n\r\nnot a TLS record');
    };
    const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
    expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_tls_failed' } });
  });

  test('ends when its tunnel is closed, before and after the proxy has answered', async () => {
    for (const text of ['', 'HTTP/1.1 200 OK\r\n\r\n']) {
      const proxy = await startProxy();
      const reached = new Promise<Socket>((resolve) => {
        proxy.answer = (socket) => {
          if (text !== '') socket.write(text, () => socket.once('data', () => resolve(socket)).resume());
          else resolve(socket);
        };
      });
      const lanes = new TunnelLanes({ dialer: dialer(settingsOf(proxy.url)), host: HOST, isPublicOnly: () => false });
      const taken = lanes.take('', null, true);
      const socket = await reached;
      const closed = once(socket.resume(), 'close');
      lanes.close();
      const ended = await taken;
      expect(ended.ok ? 'connected' : ended.error.message).not.toMatch(/^connected$|in time|ETIMEDOUT/);
      await closed;
    }
  });

  test.each([
    ['http', false],
    ['https', true],
  ])('speaks HTTP/2 with the host: an %s proxy', async (_, isSecure) => {
    const server = createSecureServer(await ca.issue([HOST]), (request, response) => {
      request.pipe(response.writeHead(200, { 'x-path': request.url }));
    });
    const port = await listen(server);
    const certificate = isSecure ? { certificate: await ca.issue(['localhost']) } : {};
    const proxy = await startCompanyProxy({ leadTo: () => port, ...certificate });
    proxies.push(proxy);
    const dialled = await dialer(settingsOf(proxy.url)).dialOffering(['h2', 'http/1.1'], HOST, false).connected;
    if (!dialled.ok || !(dialled.value instanceof UpstreamSession)) throw new Error(JSON.stringify(dialled));
    const head: RequestHead = { method: 'GET', target: '/items', version: '1.1', fields: [headerField('Host', HOST)] };
    const stream = dialled.value.open(head, true);
    expect((await stream?.nextHead())?.list).toContain('/items');
    dialled.value.destroy();
    for (const socket of proxy.open) await once(socket, 'close');
    await new Promise((resolve) => server.close(resolve));
  });

  test('is reused by its lane, and another lane asks the proxy again', async () => {
    const proxy = await startProxy();
    const lanes = new TunnelLanes({ dialer: dialer(settingsOf(proxy.url)), host: HOST, isPublicOnly: () => false });
    const first = await lanes.take('a', null, true);
    if (!first.ok) throw new Error(first.error.message);
    lanes.give('a', first.value.connection);
    expect(await lanes.take('a', null, true)).toMatchObject({ value: { reused: true } });
    expect(await lanes.take('b', null, true)).toMatchObject({ value: { reused: false } });
    expect(proxy.heads).toHaveLength(2);
    lanes.close();
  });
});

describe('what does not go through the proxy', () => {
  test('a host that NO_PROXY exempts is dialled directly, by its name or by the address that stands for it', async () => {
    const proxy = await startProxy();
    const pinned = new Map([[HOST, { address: '127.0.0.1', port: upstream.port }]]);
    for (const exempt of ['example.test', '127.0.0.1']) {
      const settings = settingsOf(proxy.url, { NO_PROXY: exempt });
      const dialled = await dialer(settings, { pinned }).dial(HOST).connected;
      expect(dialled.ok).toBe(true);
      if (dialled.ok) dialled.value.destroy();
    }
    expect(proxy.heads).toEqual([]);
  });

  test('a pinned address goes through it, with its port', async () => {
    const proxy = await startProxy();
    const pinned = new Map([[HOST, { address: '203.0.113.7', port: 8443 }]]);
    const dialled = await dialer(settingsOf(proxy.url), { pinned }).dial(HOST).connected;
    expect(dialled.ok).toBe(true);
    if (dialled.ok) dialled.value.destroy();
    expect(proxy.heads[0]).toMatch(/^CONNECT 203[.]0[.]113[.]7:8443 /);
    expect(upstream.requests).toEqual([]);
  });
});

describe('private addresses behind the proxy', () => {
  const PUBLIC = { SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' };

  test('a name is refused where only public addresses are allowed: the proxy resolves it', async () => {
    const proxy = await startProxy();
    const named = await dialer(settingsOf(proxy.url)).dial(HOST, true).connected;
    expect(named).toMatchObject({ ok: false, error: { reason: 'egress_address_not_allowed' } });
    const denied = await dialer(settingsOf(proxy.url), { denyPrivate: true }).dial(HOST).connected;
    expect(denied).toMatchObject({ ok: false, error: { reason: 'upstream_unreachable' } });
    expect(denied.ok ? '' : denied.error.message).toContain('--deny-private-upstreams');
    expect(proxy.heads).toEqual([]);
  });

  test('a name is sent to it if the proxy itself is said to reach public addresses only', async () => {
    const proxy = await startProxy();
    for (const denyPrivate of [false, true]) {
      const dialled = await dialer(settingsOf(proxy.url, PUBLIC), { denyPrivate }).dial(HOST, true).connected;
      expect(dialled.ok).toBe(true);
      if (dialled.ok) dialled.value.destroy();
    }
    expect(proxy.heads).toHaveLength(2);
  });

  test('an address is checked here, whatever is said of the proxy', async () => {
    const proxy = await startProxy();
    for (const more of [{}, PUBLIC]) {
      const upstreams = dialer(settingsOf(proxy.url, more));
      for (const host of ['10.0.0.1', '[fd00::1]', '169.254.169.254', 'localhost']) {
        const dialled = await upstreams.dial(host, true).connected;
        expect(dialled).toMatchObject({ ok: false, error: { reason: 'egress_address_not_allowed' } });
      }
      const sent = await upstreams.dial('93.184.216.34', true).connected;
      expect(sent).toMatchObject({ ok: false, error: { reason: 'upstream_tls_failed' } });
    }
    expect(proxy.heads.map((head) => head.split(' ')[1])).toEqual(['93.184.216.34:443', '93.184.216.34:443']);
  });

  test('an exempt host is dialled here, so its address is checked as without a proxy', async () => {
    const proxy = await startProxy();
    const upstreams = dialer(settingsOf(proxy.url, { NO_PROXY: 'localhost.,10.0.0.0/8' }));
    for (const host of ['localhost', '10.0.0.1']) {
      const dialled = await upstreams.dial(host, true).connected;
      expect(dialled).toMatchObject({ ok: false, error: { reason: 'egress_address_not_allowed' } });
    }
    expect(proxy.heads).toEqual([]);
  });
});

test('the reply of a host reaches the lane byte for byte', async () => {
  const proxy = await startProxy();
  const body = Buffer.alloc(300_000, 'x');
  upstream.onRequest((exchange) => exchange.write(reply(200, body)));
  const dialled = await dialer(settingsOf(proxy.url)).dial(HOST).connected;
  if (!dialled.ok) throw new Error(dialled.error.message);
  dialled.value.stream.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  let size = 0;
  while (size < body.length) size += (await dialled.value.nextChunk())?.length ?? Infinity;
  expect(size).toBeLessThan(body.length + 200);
  dialled.value.destroy();
});
