import { getEventListeners } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { createTestCa } from '../../e2e/support/test_ca.ts';
import { listen } from '../../e2e/support/tls_upstream.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { createRemoteFetch, type RemoteFetch, type RemoteFetchOptions } from './remote_fetch.ts';

type LookupDone = (error: null, addresses: readonly { readonly address: string; readonly family: number }[]) => void;

let server: Server | null = null;
let remote: RemoteFetch | null = null;
let faults: string[] = [];
const onFault = (message: string): void => void faults.push(message);
afterEach(() => {
  faults = [];
  remote?.close();
  server?.closeAllConnections();
  server?.close();
});

async function serving(answer: RequestListener, options: Partial<RemoteFetchOptions> = {}): Promise<string> {
  server = createServer(answer);
  const origin = `http://127.0.0.1:${await listen(server)}`;
  const limits = { maxMessageBytes: 10_000, maxBytesPerSecond: 1e9, maxMessagesPerSecond: 1e9, onFault };
  remote = createRemoteFetch({ origin, isLocal: true, extraRoots: [], ...limits, ...options });
  return origin;
}

test('sends method, headers and body, and requests no compression', async () => {
  let seen = {};
  const origin = await serving((request, response) => {
    seen = request.headers;
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => response.end(JSON.stringify([request.method, request.url, request.headers, body])));
  });
  const headers = { authorization: 'Bearer x', 'accept-encoding': 'gzip' };
  const reply = await remote!.fetch(`${origin}/a?b=c`, { method: 'POST', headers, body: '{"ü":1}' });
  expect(await reply.json()).toEqual(['POST', '/a?b=c', expect.anything(), '{"ü":1}']);
  expect(seen).toMatchObject({ authorization: 'Bearer x', 'accept-encoding': 'identity', 'content-length': '8' });
});

test('keeps nothing of a call at a signal that outlives it', async () => {
  const origin = await serving((_request, response) => response.end('x'));
  const { signal } = new AbortController();
  for (let count = 0; count < 20; count += 1) await (await remote!.fetch(origin, { signal })).text();
  // Node removes its own listener when the request is closed, shortly after the end of the reply.
  await vi.waitFor(() => expect(getEventListeners(signal, 'abort')).toEqual([]));
});

test('a call whose signal is aborted fails with its reason', async () => {
  const origin = await serving(() => undefined);
  const controller = new AbortController();
  const pending = remote!.fetch(origin, { signal: controller.signal });
  controller.abort(new Error('stopped'));
  await expect(pending).rejects.toThrow('stopped');
  await expect(remote!.fetch(origin, { signal: controller.signal })).rejects.toThrow('stopped');
});

test('returns a redirect unfollowed, and sends nothing to another origin', async () => {
  const origin = await serving((_request, response) =>
    response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
  );
  expect((await remote!.fetch(`${origin}/`)).status).toBe(307);
  await expect(remote!.fetch('http://127.0.0.1:9/')).rejects.toThrow('is not the origin of this server');
  await expect(remote!.fetch(origin.replace('127.0.0.1', 'localhost'))).rejects.toThrow('is not the origin');
});

test('reaches no private address unless local', async () => {
  const origin = await serving((_request, response) => response.end('inside'), { isLocal: false });
  await expect(remote!.fetch(origin)).rejects.toMatchObject({ code: 'EPRIVATE' });
  for (const target of ['https://localhost', 'https://10.0.0.1', 'https://[fd00::1]', 'https://169.254.169.254']) {
    const other = createRemoteFetch({
      origin: target,
      isLocal: false,
      extraRoots: [],
      maxMessageBytes: 9,
      maxBytesPerSecond: 9,
      maxMessagesPerSecond: 9,
      onFault,
    });
    await expect(other.fetch(target)).rejects.toMatchObject({ code: 'EPRIVATE' });
    other.close();
  }
});

test.each([
  ['that resolves to a private address', ['127.0.0.1']],
  ['with one private address', ['8.8.8.8', '10.0.0.1']],
])('refuses a name %s, even if it resolved differently before', async (_, addresses) => {
  const answers = addresses.map((address) => ({ address, family: 4 }));
  const lookup = z.custom<RemoteFetchOptions['lookup']>().parse((_name: string, _options: object, done: LookupDone) => {
    done(null, answers);
  });
  const origin = await serving((_request, response) => response.end('inside'), { isLocal: false });
  const named = origin.replace('127.0.0.1', 'mcp.example.test');
  const limits = { maxMessageBytes: 10_000, maxBytesPerSecond: 1e9, maxMessagesPerSecond: 1e9, onFault };
  const far = createRemoteFetch({
    origin: named,
    isLocal: false,
    extraRoots: [],
    ...limits,
    ...(lookup && { lookup }),
  });
  await expect(far.fetch(named)).rejects.toMatchObject({ code: 'EPRIVATE' });
  far.close();
});

test('ends a reply over the message limit, and a stream only if one event is over it', async () => {
  const origin = await serving((request, response) => {
    const stream = request.url === '/stream';
    response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
    const event = `data: ${'x'.repeat(request.url === '/one' ? 20_000 : 4_000)}\n\n`;
    for (let count = 0; count < 10; count += 1) response.write(event);
    response.end();
  });
  await expect((await remote!.fetch(`${origin}/one`)).text()).rejects.toThrow('more than 10000 bytes');
  expect(faults).toHaveLength(1);
  expect((await (await remote!.fetch(`${origin}/stream`)).text()).length).toBe(40_080);
});

test.each([
  ['a stream', 'text/event-stream', '\n\n', 2_000],
  ['a stream with other line ends', 'text/event-stream', '\r\n\r\n', 2_000],
  ['a stream with old line ends', 'text/event-stream', '\r\r', 2_000],
  ['a stream with mixed line ends', 'text/event-stream', '\n\r\n', 2_000],
  ['a reply that is no stream', 'application/json', '\n\n', 0],
])('%s has a limit for its messages per second', async (_, type, end, leastMs) => {
  let waitedMs = 0;
  const wait = (ms: number) => Promise.resolve(void (waitedMs += ms));
  const origin = await serving(
    (_request, response) => response.writeHead(200, { 'content-type': type }).end(`data: {}${end}`.repeat(200)),
    { maxMessagesPerSecond: 100, wait },
  );
  await (await remote!.fetch(origin)).text();
  expect([waitedMs >= leastMs, waitedMs < leastMs + 100]).toEqual([true, true]);
});

test('refuses a compressed reply', async () => {
  const origin = await serving((_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
  );
  await expect(remote!.fetch(origin)).rejects.toThrow('compressed');
});

test('a server behind the upstream proxy is called through it only if local, or if the proxy reaches public addresses only', async () => {
  const ca = await createTestCa();
  const secure = createSecureServer(await ca.issue(['mcp.example.test']), (_request, response) =>
    response.end('there'),
  );
  const port = await listen(secure);
  const proxy = await startCompanyProxy({ leadTo: () => port });
  const origin = 'https://mcp.example.test';
  const fetchWith = async (isLocal: boolean, publicOnly: string): Promise<string> => {
    const found = readUpstreamProxy({ SVC_UPSTREAM_PROXY: proxy.url, SVC_UPSTREAM_PROXY_PUBLIC_ONLY: publicOnly });
    if (!found.ok) throw new Error(found.error);
    const limits = { maxMessageBytes: 10_000, maxBytesPerSecond: 1e9, maxMessagesPerSecond: 1e9, onFault };
    const through = createRemoteFetch({ origin, isLocal, extraRoots: [ca.pem], proxy: found.value, ...limits });
    const reply = await through.fetch(origin);
    const text = await reply.text();
    through.close();
    return text;
  };
  expect(await fetchWith(true, 'off')).toBe('there');
  expect(await fetchWith(false, 'on')).toBe('there');
  expect(proxy.heads).toHaveLength(2);
  await expect(fetchWith(false, 'off')).rejects.toMatchObject({ code: 'EUNCHECKED' });
  expect(proxy.heads).toHaveLength(2);
  await proxy.close();
  secure.closeAllConnections();
  secure.close();
});
