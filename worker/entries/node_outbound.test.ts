import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { createServer } from 'node:http';
import { isIP } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type CompanyProxy, startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { createTestCa, type TestCa } from '../../e2e/support/test_ca.ts';
import { listen, reply, startTlsUpstream, type TlsUpstream } from '../../e2e/support/tls_upstream.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { fetchOutbound } from '../kernel/fetch_outbound.ts';
import { CALL_LIMITS } from '../kernel/outbound.ts';
import { nodeOutbound, type NodeOutboundOptions, parsePin } from './node_outbound.ts';

const HOST = 'api.example.test';
let ca: TestCa;
let upstream: TlsUpstream;

beforeAll(async () => {
  ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([HOST]));
});
afterAll(() => upstream.close());
beforeEach(() => upstream.reset());

const outbound = (options: Partial<NodeOutboundOptions> = {}) => {
  const pinned = new Map(
    [HOST, 'other.example.test'].map((host) => [host, { address: '127.0.0.1', port: upstream.port }]),
  );
  return nodeOutbound({ isLocal: true, pinned, roots: [ca.pem], ...options });
};
const get = (url: string, options?: Partial<NodeOutboundOptions>) =>
  outbound(options).call({ method: 'GET', url, headers: { accept: '*/*' }, body: null });
const textOf = (body: Uint8Array) => new TextDecoder().decode(body);

describe('an outgoing call', () => {
  test('sends method, target, headers and body, and requests no compression', async () => {
    const body = new TextEncoder().encode('{"a":1}');
    const headers = { authorization: 'Bearer x', 'content-type': 'application/json' };
    const called = await outbound().call({ method: 'POST', url: `https://${HOST}/a?b=1`, headers, body });
    expect(called).toMatchObject({ ok: true, value: { status: 200 } });
    const seen = upstream.last();
    expect([seen.method, seen.target, seen.body.data.toString()]).toEqual(['POST', '/a?b=1', '{"a":1}']);
    expect(seen.serverName).toBe(HOST);
  });

  test('returns a redirect, and does not follow it', async () => {
    upstream.onRequest((exchange) => exchange.write(reply(302, 'moved', ['Location: https://evil.example/'])));
    expect(await get(`https://${HOST}/`)).toMatchObject({ ok: true, value: { status: 302 } });
    expect(upstream.requests).toHaveLength(1);
  });

  test('decodes a reply that was compressed anyway', async () => {
    upstream.onRequest((exchange) => exchange.write(reply(200, gzipSync('plain'), ['Content-Encoding: gzip'])));
    const called = await get(`https://${HOST}/`);
    expect(called.ok && textOf(called.value.body)).toBe('plain');
  });

  test.each([
    [
      'a reply over the limit',
      () => reply(200, Buffer.alloc(CALL_LIMITS.maxReplyBytes + 1)),
      'upstream_response_too_large',
    ],
    [
      'one that is small until it is decompressed',
      () => reply(200, gzipSync(Buffer.alloc(CALL_LIMITS.maxReplyBytes + 1)), ['Content-Encoding: gzip']),
      'upstream_response_too_large',
    ],
    ['an unknown coding', () => reply(200, 'x', ['Content-Encoding: zstd']), 'upstream_invalid_reply'],
    ['broken gzip', () => reply(200, 'x', ['Content-Encoding: gzip']), 'upstream_invalid_reply'],
    ['no HTTP', () => Buffer.from('SSH-2.0-x\r\n\r\n'), 'upstream_invalid_reply'],
  ])('refuses %s', async (_, bytes, reason) => {
    upstream.onRequest((exchange) => exchange.write(bytes()));
    expect(await get(`https://${HOST}/`)).toMatchObject({ ok: false, error: { reason } });
  });

  test('refuses a body that ends early', async () => {
    upstream.onRequest((exchange) => {
      exchange.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc');
      exchange.socket.end();
    });
    expect(await get(`https://${HOST}/`)).toMatchObject({ error: { reason: 'upstream_invalid_reply' } });
  });

  test('refuses a reply that switches protocols, and closes that connection', async () => {
    const closed = Promise.withResolvers<void>();
    upstream.onRequest((exchange) => {
      exchange.socket.on('close', () => closed.resolve());
      exchange.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
    expect(await get(`https://${HOST}/`)).toMatchObject({
      error: { reason: 'upstream_invalid_reply', message: expect.stringContaining('switches to another protocol') },
    });
    await closed.promise;
  });

  test('gives up on an upstream that sends its body endlessly slowly', async () => {
    upstream.onRequest((exchange) => {
      exchange.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n');
      const timer = setInterval(() => exchange.write('1\r\nx\r\n'), 20);
      exchange.socket.on('close', () => clearInterval(timer));
    });
    expect(await get(`https://${HOST}/`, { timeoutMs: 200 })).toMatchObject({
      error: { reason: 'upstream_unreachable', message: `${HOST} could not be reached (no complete answer in time)` },
    });
  });

  test('takes a time with fractions of a millisecond', async () => {
    expect(await get(`https://${HOST}/`, { timeoutMs: 10_000.25 })).toMatchObject({ ok: true });
  });

  test('refuses a certificate for another name or from an unknown authority', async () => {
    expect(await get('https://other.example.test/')).toMatchObject({ error: { reason: 'upstream_tls_failed' } });
    expect(await get(`https://${HOST}/`, { roots: [] })).toMatchObject({ error: { reason: 'upstream_tls_failed' } });
  });

  test.each([
    'http://api.example.test/',
    'https://api.example.test:8443/',
    'https://user@api.example.test/',
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://2130706433/',
  ])('is never made to %s', async (url) => {
    for (const port of [outbound(), fetchOutbound(true)]) {
      const called = await port.call({ method: 'GET', url, headers: {}, body: null });
      expect(called).toMatchObject({ ok: false, error: { reason: 'upstream_unreachable' } });
    }
    expect(upstream.requests).toEqual([]);
  });

  test('of a hosted control plane goes to no name that resolves to a private address, pinned or not', async () => {
    for (const url of [`https://localhost/`, 'http://127.0.0.1:1/', 'http://localhost:1/']) {
      expect(await get(url, { isLocal: false })).toMatchObject({ error: { reason: 'upstream_unreachable' } });
    }
    expect(await get(`https://${HOST}/`, { isLocal: false })).toMatchObject({ ok: false });
    expect(upstream.requests).toEqual([]);
  });
});

describe('a host name called by a hosted control plane', () => {
  /** The resolved names. */
  let resolved: string[];
  beforeEach(() => {
    resolved = [];
  });

  const callNameOf = (...addresses: string[]) =>
    get(`https://${HOST}/`, {
      isLocal: false,
      timeoutMs: 1_000,
      resolve: (hostname, _options, callback) => {
        resolved.push(hostname);
        callback(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        );
      },
    });

  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '100.64.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '192.168.1.1',
    '0.0.0.0',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a00:1',
    'fc00::1',
    'fe80::1',
  ])('is not %s', async (address) => {
    for (const addresses of [[address], ['8.8.8.8', address]]) {
      expect(await callNameOf(...addresses)).toMatchObject({
        error: {
          reason: 'upstream_unreachable',
          message: `${HOST} could not be reached (it resolves to a private address, which the operator can allow by SVC_PRIVATE_HOSTS)`,
        },
      });
    }
  });

  test('is resolved once, so that the checked address is the dialled one', async () => {
    const called = await callNameOf('fbff::9');
    expect(called).toMatchObject({ error: { message: expect.not.stringContaining('private') } });
    expect(resolved).toEqual([HOST]);
  });
});

const call = (options: Partial<NodeOutboundOptions>) => get(`https://${HOST}/a?b`, { pinned: new Map(), ...options });

describe('through an upstream proxy', () => {
  let proxy: CompanyProxy;
  beforeAll(async () => {
    proxy = await startCompanyProxy({ leadTo: () => upstream.port });
  });
  afterAll(() => proxy.close());
  beforeEach(() => {
    proxy.heads.length = 0;
    proxy.answer = null;
  });

  const settings = (more: Record<string, string> = {}) => {
    const url = proxy.url.replace('//', '//worker:planted@');
    const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: url, ...more });
    if (!read.ok) throw new Error(read.error);
    return read.value;
  };
  const PUBLIC = { SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' };
  test('a call is verified for its host, and the proxy gets the host and our credentials alone', async () => {
    expect(await call({ proxy: settings() })).toMatchObject({ ok: true, value: { status: 200 } });
    expect(upstream.last()).toMatchObject({ serverName: HOST, target: '/a?b' });
    const credentials = `Proxy-Authorization: Basic ${btoa('worker:planted')}`;
    expect(proxy.heads).toEqual([`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n${credentials}\r\n\r\n`]);
    const stranger = await createTestCa();
    expect(await call({ proxy: settings(), roots: [stranger.pem] })).toMatchObject({
      error: { reason: 'upstream_tls_failed' },
    });
    for (const socket of proxy.open) await once(socket, 'close');
  });

  test('a refusal of the proxy is told without its password', async () => {
    proxy.answer = (socket) => void socket.end('HTTP/1.1 407 x\r\n\r\n');
    expect(await call({ proxy: settings() })).toEqual({
      ok: false,
      error: {
        reason: 'upstream_unreachable',
        message: `${HOST} could not be reached (the upstream proxy does not accept the user name and password (407))`,
      },
    });
  });

  test('a proxy that does not answer holds no call beyond its time limit', async () => {
    for (const text of ['', 'HTTP/1.1 200 OK\r\n\r\n']) {
      proxy.answer = (socket) => void socket.write(text);
      expect(await call({ proxy: settings(), timeoutMs: 200 })).toMatchObject({
        error: { message: `${HOST} could not be reached (no complete answer in time)` },
      });
    }
    for (const socket of proxy.open) await once(socket.resume(), 'close');
  });

  test('an exempt host is called directly', async () => {
    const pinned = new Map([[HOST, { address: '127.0.0.1', port: upstream.port }]]);
    expect(await call({ proxy: settings({ NO_PROXY: HOST }), pinned })).toMatchObject({ ok: true });
    expect(proxy.heads).toEqual([]);
  });

  test('a hosted control plane sends no name to it whose address it cannot check', async () => {
    const refused = await call({ isLocal: false, proxy: settings() });
    expect(refused).toMatchObject({ error: { reason: 'upstream_unreachable' } });
    expect(refused.ok ? '' : refused.error.message).toContain('SVC_PRIVATE_HOSTS');
    const atPort = await callPort({ proxy: settings(), privateHosts: [HOST] }, true);
    expect(atPort.ok ? '' : atPort.error.message).toContain(`SVC_PRIVATE_HOSTS, as ${HOST}:${upstream.port}`);
    expect(proxy.heads).toEqual([]);
  });

  test.each<[string, () => Partial<NodeOutboundOptions>]>([
    ['the proxy is said to reach public addresses only', () => ({ proxy: settings(PUBLIC) })],
    ['the host is a named private one', () => ({ proxy: settings(), privateHosts: [HOST] })],
  ])('but does if %s', async (_, options) => {
    expect(await call({ isLocal: false, ...options() })).toMatchObject({ ok: true });
  });
});

const toLoopback: NodeOutboundOptions['resolve'] = (_hostname, _options, callback) =>
  callback(null, [{ address: '127.0.0.1', family: 4 }]);

test('a hosted control plane calls a named private host, and no other name that leads there', async () => {
  const options = { isLocal: false, timeoutMs: 1_000, resolve: toLoopback, privateHosts: ['localhost.example.test'] };
  expect(await get(`https://${HOST}/`, options)).toMatchObject({
    error: {
      message: `${HOST} could not be reached (it resolves to a private address, which the operator can allow by SVC_PRIVATE_HOSTS)`,
    },
  });
  const named = await get('https://localhost.example.test/', options);
  expect(named.ok ? '' : named.error.message).not.toContain('private');
});

const callPort = (more: Partial<NodeOutboundOptions>, anyPort?: true) =>
  outbound({ isLocal: false, pinned: new Map(), resolve: toLoopback, timeoutMs: 10_000, ...more }).call({
    method: 'GET',
    url: `https://${HOST}:${upstream.port}/a`,
    headers: {},
    body: null,
    ...(anyPort && { anyPort }),
  });

describe('another port than 443', () => {
  test('is called if the request says so', async () => {
    const local = await startTlsUpstream(await ca.issue(['localhost']));
    const request = { method: 'GET', url: `https://localhost:${local.port}/a`, headers: {}, body: null };
    expect(await outbound().call({ ...request, anyPort: true })).toMatchObject({ ok: true, value: { status: 200 } });
    expect(local.last().target).toBe('/a');
    expect(await outbound().call(request)).toMatchObject({ error: { message: expect.stringContaining('port 443') } });
    await local.close();
  });

  test('is called on no runtime without that', async () => {
    for (const each of [fetchOutbound(true), fetchOutbound(false)]) {
      const request = { method: 'GET', url: `https://${HOST}:8200/`, headers: {}, body: null };
      const refused = { error: { message: expect.stringContaining('only port 443') } };
      expect(await each.call(request)).toMatchObject(refused);
      expect(await each.call({ ...request, anyPort: true })).not.toMatchObject(refused);
    }
  });

  test('is called on Cloudflare too: before this date, a Worker called 443 instead', () => {
    const deployed = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
    expect((/^compatibility_date = "([\d-]+)"$/m.exec(deployed)?.[1] ?? '') >= '2024-09-02').toBe(true);
    expect(deployed).not.toContain('ignore_custom_ports');
  });

  test('is called at a private address only if it is named with the host', async () => {
    for (const privateHosts of [[], [HOST], [`${HOST}:${upstream.port + 1}`]]) {
      const message = expect.stringContaining(`allow by SVC_PRIVATE_HOSTS, as ${HOST}:${upstream.port}`);
      expect(await callPort({ privateHosts }, true)).toMatchObject({ error: { message } });
    }
    const named = await callPort({ privateHosts: [`${HOST}:${upstream.port}`] }, true);
    expect(named.ok ? '' : named.error.message).not.toContain('private');
    expect(upstream.requests).toEqual([]);
  });

  test('is kept by a pin without a port, and a pin with one is for port 443 alone', async () => {
    const unresolved = 'pinned.invalid';
    const callPinned = (port: number | null, more: Partial<NodeOutboundOptions> = {}) => {
      const pinned = new Map([HOST, unresolved].map((host) => [host, { address: '127.0.0.1', port }]));
      const calls = outbound({ pinned, ...more });
      return Promise.all(
        [HOST, unresolved].map((host) =>
          calls.call({
            method: 'GET',
            url: `https://${host}:${upstream.port}/a`,
            headers: {},
            body: null,
            anyPort: true,
          }),
        ),
      );
    };
    expect(await callPinned(null)).toMatchObject([{ ok: true }, { error: { reason: 'upstream_tls_failed' } }]);
    expect(upstream.last()).toMatchObject({ serverName: HOST, target: '/a' });
    upstream.reset();
    const reason = 'upstream_unreachable';
    expect(await callPinned(upstream.port)).toMatchObject([{ error: { reason } }, { error: { reason } }]);
    expect(upstream.requests).toEqual([]);
  });

  test('of a pinned host is asked of the upstream proxy at its address', async () => {
    const proxy = await startCompanyProxy({ leadTo: () => upstream.port });
    const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: proxy.url });
    if (!read.ok) throw new Error(read.error);
    for (const port of [null, 8443]) {
      const pinned = new Map([[HOST, { address: '203.0.113.9', port }]]);
      expect(await callPort({ isLocal: true, proxy: read.value, pinned }, true)).toMatchObject({ ok: true });
    }
    expect(proxy.heads.map((head) => head.split(' ')[1])).toEqual([
      `203.0.113.9:${upstream.port}`,
      `${HOST}:${upstream.port}`,
    ]);
    await proxy.close();
  });

  test('is asked of the upstream proxy', async () => {
    const proxy = await startCompanyProxy({ leadTo: () => upstream.port });
    const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: proxy.url, SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on' });
    if (!read.ok) throw new Error(read.error);
    expect(await callPort({ proxy: read.value }, true)).toMatchObject({ ok: true });
    expect(proxy.heads[0]).toContain(`CONNECT ${HOST}:${upstream.port} HTTP/1.1`);
    await proxy.close();
  });
});

test('a stream reaches a named private host at the port of syslog, and at another one only if it is named too', async () => {
  const host = 'localhost.example.test';
  const streamTo = async (to: number, privateHosts: readonly string[]) => {
    const options = { isLocal: false, timeoutMs: 1_000, resolve: toLoopback, privateHosts };
    const sent = await outbound(options).stream?.({ host, port: to, bytes: new Uint8Array(1), timeoutMs: 1_000 });
    return sent?.ok === false ? sent.error.message : 'sent';
  };
  for (const named of [[], [host], [`${host}:6516`]]) {
    expect(await streamTo(6515, named)).toContain('private address');
  }
  expect(await streamTo(443, [host])).toContain(`SVC_PRIVATE_HOSTS, as ${host}:443`);
  expect(await streamTo(6514, [])).toMatch(/SVC_PRIVATE_HOSTS\)$/);
  const url = `https://${host}:6514/`;
  const call6514 = { method: 'GET', url, headers: {}, body: null, anyPort: true } as const;
  expect(await outbound({ isLocal: false, resolve: toLoopback, privateHosts: [host] }).call(call6514)).toMatchObject({
    error: { message: expect.stringContaining(`SVC_PRIVATE_HOSTS, as ${host}:6514`) },
  });
  expect(await streamTo(6515, [`${host}:6515`])).not.toContain('private address');
  expect(await streamTo(6514, [host])).not.toContain('private address');
});

test.each(['localhost', 'localhost.', 'vault', 'vault.'])(
  'a hosted control plane calls %s, which is not a public name, on no runtime',
  async (host) => {
    const request = { method: 'GET', url: `https://${host}/`, headers: {}, body: null };
    const called = await fetchOutbound(false).call(request);
    expect(called).toMatchObject({ ok: false, error: { message: expect.stringContaining('public host names only') } });
  },
);

describe('plain http on loopback', () => {
  test('is for local mode, on every adapter', async () => {
    const server = createServer((_request, response) => response.end('hello'));
    const url = `http://127.0.0.1:${await listen(server)}/`;
    for (const port of [outbound(), fetchOutbound(true)]) {
      const called = await port.call({ method: 'GET', url, headers: {}, body: null });
      expect(called.ok && textOf(called.value.body)).toBe('hello');
    }
    expect(await fetchOutbound(false).call({ method: 'GET', url, headers: {}, body: null })).toMatchObject({
      ok: false,
    });
    server.close();
  });

  test('without a listener is unreachable', async () => {
    for (const port of [outbound(), fetchOutbound(true)]) {
      const called = await port.call({ method: 'GET', url: 'http://127.0.0.1:1/', headers: {}, body: null });
      expect(called).toMatchObject({ error: { reason: 'upstream_unreachable' } });
    }
  });
});

test('a pin names a host, an address and a port', () => {
  expect(parsePin('API.example.test:127.0.0.1:8443')).toEqual([HOST, { address: '127.0.0.1', port: 8443 }]);
  expect(parsePin('api.example.test:[::1]')).toEqual([HOST, { address: '::1', port: null }]);
  for (const text of ['', 'api.example.test', 'api.example.test:name', 'a:1.2.3.4:0', 'a:1.2.3.4:99999']) {
    expect(parsePin(text)).toBeNull();
  }
});
