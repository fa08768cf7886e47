import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type CompanyProxy, startCompanyProxy } from '../../e2e/support/company_proxy.ts';
import { createTestCa, type TestCa } from '../../e2e/support/test_ca.ts';
import { listen } from '../../e2e/support/tls_upstream.ts';
import { readUpstreamProxy, type UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { createHttpClient } from '../http_call.ts';
import { createNodeFetch } from '../node_fetch.ts';

const HOST = 'control.example.test';
const STATUS: Readonly<Record<string, number>> = { '/moved': 302, '/empty': 204 };
let ca: TestCa;
let server: Server;
let port: number;
let proxy: CompanyProxy;

beforeAll(async () => {
  ca = await createTestCa();
  server = createServer(await ca.issue([HOST]), (request, response) => {
    if (request.url !== '/empty') response.setHeader('set-cookie', ['a=1', 'b=2']);
    request.pipe(response.writeHead(STATUS[request.url ?? ''] ?? 200));
  });
  port = await listen(server);
  proxy = await startCompanyProxy({ leadTo: (target) => (target === `${HOST}:443` ? port : null) });
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await proxy.close();
});
beforeEach(() => {
  proxy.answer = null;
  proxy.heads.length = 0;
});

function settings(more: Record<string, string> = {}): UpstreamProxy {
  const read = readUpstreamProxy({ SVC_UPSTREAM_PROXY: proxy.url.replace('//', '//worker:word@'), ...more });
  if (!read.ok || read.value === null) throw new Error(JSON.stringify(read));
  return read.value;
}

const CALL = { method: 'POST', target: '/', headers: {}, body: 'hello', timeoutMs: 10_000 } as const;
const client = (host: string, upstream: UpstreamProxy) =>
  createHttpClient({ baseUrl: new URL(`https://${host}`), extraCa: [ca.pem], proxy: upstream, maxReplyBytes: 1000 });

const nodeFetch = (upstream: UpstreamProxy | null) => createNodeFetch({ extraCa: [ca.pem], proxy: upstream });

describe('a call over https', () => {
  test('goes through the proxy, by one connection for many calls, with TLS to the host', async () => {
    const control = client(HOST, settings());
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await control.call(CALL)).toMatchObject({ ok: true, value: { status: 200, body: 'hello' } });
    }
    expect(proxy.heads).toHaveLength(1);
    expect(proxy.heads[0]).toContain(`CONNECT ${HOST}:443 HTTP/1.1\r\n`);
    control.close();
  });

  test('says what the proxy answered, without its address', async () => {
    proxy.answer = (socket) => void socket.end('HTTP/1.1 407 x\r\n\r\n');
    const control = client(HOST, settings());
    expect(await control.call(CALL)).toEqual({
      ok: false,
      error: { reason: 'unreachable', message: 'the upstream proxy does not accept the user name and password (407)' },
    });
    control.close();
  });

  test('ends in time, and when it is cancelled, also while the proxy does not answer', async () => {
    proxy.answer = () => undefined;
    const control = client(HOST, settings());
    expect(await control.call({ ...CALL, timeoutMs: 100 })).toMatchObject({ error: { reason: 'timeout' } });
    const cancel = new AbortController();
    const called = control.call({ ...CALL, signal: cancel.signal });
    cancel.abort();
    expect(await called).toMatchObject({ error: { reason: 'aborted' } });
    control.close();
  });

  test('is verified for its host, so the proxy cannot answer it', async () => {
    const stranger = await createTestCa();
    const trap = createServer(await stranger.issue([HOST]), (_request, response) => response.end('trap'));
    const trapped = await startCompanyProxy({ leadTo: () => trapPort });
    const trapPort = await listen(trap);
    const read = readUpstreamProxy({ HTTPS_PROXY: trapped.url });
    if (!read.ok || read.value === null) throw new Error('no proxy');
    const control = client(HOST, read.value);
    expect(await control.call(CALL)).toMatchObject({ ok: false, error: { reason: 'untrusted_certificate' } });
    control.close();
    await trapped.close();
    trap.close();
  });

  test('to an exempt host goes directly', async () => {
    const control = client(`localhost:${port}`, settings());
    await control.call(CALL);
    const exempt = client(HOST, settings({ NO_PROXY: HOST }));
    expect(await exempt.call(CALL)).toMatchObject({ ok: false, error: { reason: 'unreachable' } });
    expect(proxy.heads).toEqual([]);
  });
});

describe('fetch of the command line', () => {
  test('goes through the proxy and returns replies as they are', async () => {
    const fetchThrough = nodeFetch(settings());
    const reply = await fetchThrough(new URL(`https://${HOST}/moved`), { method: 'POST', body: 'hello' });
    expect([reply.status, await reply.text(), reply.headers.getSetCookie()]).toEqual([302, 'hello', ['a=1', 'b=2']]);
    expect((await fetchThrough(`https://${HOST}/empty`)).status).toBe(204);
    expect(proxy.heads).toHaveLength(1);
  });

  test('fails with what the proxy answered', async () => {
    proxy.answer = (socket) => void socket.end('HTTP/1.1 403 x\r\n\r\n');
    const failed = nodeFetch(settings())(`https://${HOST}/`);
    await expect(failed).rejects.toMatchObject({
      cause: { message: 'the upstream proxy does not allow this connection (403)' },
    });
  });

  test('ends with the reason of its signal', async () => {
    proxy.answer = () => undefined;
    const reason = new Error('enough');
    const fetchThrough = nodeFetch(settings());
    await expect(fetchThrough(`https://${HOST}/`, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const cancel = new AbortController();
    const failed = fetchThrough(`https://${HOST}/`, { signal: cancel.signal });
    cancel.abort(reason);
    await expect(failed).rejects.toBe(reason);
  });

  test('calls this machine directly, whatever the variables of Node say', async () => {
    const plain = createHttpServer((_request, response) => response.end('here'));
    const plainPort = await listen(plain);
    const reply = await nodeFetch(settings())(`http://127.0.0.1:${plainPort}/`);
    expect(await reply.text()).toBe('here');
    expect(proxy.heads.filter((head) => head.includes('127.0.0.1'))).toEqual([]);
    plain.closeAllConnections();
    plain.close();
  });
});
