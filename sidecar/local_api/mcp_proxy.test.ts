import { once } from 'node:events';
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ok, type Result } from '../../shared/model/result.ts';
import { CALLER_HEADER, readCallerHeader } from '../../machine/mcp_caller.ts';
import { HOST_TOKEN, LocalApiBench } from '../testing/local_api_bench.ts';
import { mcpOptions } from '../testing/mcp_options.ts';
import { createApiServer } from './api_server.ts';
import { createLocalApi } from './app.ts';
import { MAX_MCP_BODY_BYTES, MAX_MCP_REQUESTS_OF_SESSION, OpenRequests } from './mcp_proxy.ts';

/** One request as received by the gateway; the test answers it. */
interface Arrived {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly closed: Promise<unknown>;
}

let bench: LocalApiBench;
let gateway: Server;
let api: Server;
let port: number;
let socket: () => Promise<Result<string, string>>;
let arrivals: Arrived[];
let onArrival: (() => void) | null;

beforeEach(async () => {
  bench = await LocalApiBench.start();
  arrivals = [];
  onArrival = null;
  gateway = createServer((request, response) => {
    arrivals.push({ request, response, closed: once(response, 'close') });
    onArrival?.();
  });
  const path = join(bench.home, 'gateway.sock');
  gateway.listen(path);
  await once(gateway, 'listening');
  socket = () => Promise.resolve(ok(path));
  const app = createLocalApi({ ...bench.options, mcp: { ...mcpOptions(bench), gateway: { socket: () => socket() } } });
  const listener = getRequestListener(app.fetch);
  api = createApiServer((request, response) => void listener(request, response));
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  const address = api.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});

afterEach(async () => {
  api.closeAllConnections();
  gateway.closeAllConnections();
  api.close();
  gateway.close();
  await bench.stop();
});

interface Sent {
  readonly token?: string | null;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function send({ token = HOST_TOKEN, method = 'POST', headers = {} }: Sent = {}): ClientRequest {
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  return httpRequest({
    port,
    host: '127.0.0.1',
    method,
    path: '/v1/mcp',
    headers: { ...authorization, 'content-type': 'application/json', ...headers },
  }).on('error', () => undefined);
}

async function waitForArrival(): Promise<Arrived> {
  while (arrivals.length === 0) await new Promise<void>((resolve) => (onArrival = resolve));
  const first = arrivals.shift();
  if (first === undefined) throw new Error('nothing arrived');
  return first;
}

function replyTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve) => request.once('response', resolve));
}

function dataOf(reply: IncomingMessage): Promise<string> {
  return new Promise((resolve) => reply.once('data', (chunk: Buffer) => resolve(chunk.toString())));
}

async function textOf(reply: IncomingMessage): Promise<string> {
  return Buffer.concat(await reply.toArray()).toString('utf8');
}

async function answerOf(
  request: ClientRequest,
  body = '',
): Promise<{ readonly status: number; readonly code: string }> {
  request.end(body);
  const reply = await replyTo(request);
  const text = await textOf(reply);
  const code = /"code":"(\w+)"/.exec(text)?.[1] ?? '';
  return { status: reply.statusCode ?? 0, code };
}

describe('/v1/mcp', () => {
  test("forwards the message and the protocol's headers, and no token or caller claim", async () => {
    const request = send({
      headers: {
        accept: 'application/json, text/event-stream',
        'mcp-session-id': 'one',
        'mcp-protocol-version': '2025-11-25',
        'Mcp-Param-User_Id.v2': '7',
        [CALLER_HEADER]: 'forged',
        cookie: 'a=b',
        'x-forwarded-for': '10.0.0.1',
      },
    });
    request.end('{"jsonrpc":"2.0"}');
    const { request: got, response } = await waitForArrival();
    expect([got.method, got.url, await textOf(got)]).toEqual(['POST', '/mcp', '{"jsonrpc":"2.0"}']);
    const { host: _host, connection: _connection, [CALLER_HEADER]: caller, ...rest } = got.headers;
    expect(rest).toEqual({
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'content-length': '17',
      'mcp-session-id': 'one',
      'mcp-protocol-version': '2025-11-25',
      'mcp-param-user_id.v2': '7',
    });
    expect(readCallerHeader(String(caller))).toEqual({ sessionId: null, servers: null });
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'two', 'set-cookie': 'c=d' });
    response.end('{"ok":true}');
    const reply = await replyTo(request);
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'mcp-session-id': 'two' });
    expect(reply.headers).not.toHaveProperty('set-cookie');
    expect(await textOf(reply)).toBe('{"ok":true}');
  });

  test('names the session of a request and the servers named at its launch', async () => {
    const { session, token } = await bench.sessions.create({ name: null, ttlSeconds: 60, mcpServers: ['mcp_1'] });
    send({ token: token ?? '' }).end('{}');
    const { request } = await waitForArrival();
    const caller = readCallerHeader(String(request.headers[CALLER_HEADER]));
    expect(caller).toEqual({ sessionId: session.id, servers: ['mcp_1'] });
  });

  test('streams events as they arrive', async () => {
    const request = send({ method: 'GET', headers: { accept: 'text/event-stream' } });
    request.end();
    const { response } = await waitForArrival();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    const reply = await replyTo(request);
    expect(await dataOf(reply)).toBe('data: 1\n\n');
    const second = dataOf(reply);
    response.write('data: 2\n\n');
    expect(await second).toBe('data: 2\n\n');
  });

  test('keeps an empty reply empty', async () => {
    const request = send({ method: 'DELETE' });
    request.end();
    (await waitForArrival()).response.writeHead(204).end();
    expect((await replyTo(request)).statusCode).toBe(204);
  });

  test.each(['before', 'after'])(
    'a client that disconnects %s the reply began is disconnected at the gateway',
    async (when) => {
      const request = send();
      request.end('{}');
      const { response, closed } = await waitForArrival();
      if (when === 'after') {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        await once(await replyTo(request), 'data');
      }
      request.destroy();
      await closed;
      expect(response.writableFinished).toBe(false);
    },
  );

  test('the end of a session ends its open requests', async () => {
    const { session, token } = await bench.sessions.create({ name: null, ttlSeconds: 60 });
    const request = send({ token: token ?? '' });
    request.end('{}');
    const { response, closed } = await waitForArrival();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    const reply = await replyTo(request);
    reply.on('error', () => undefined);
    await once(reply, 'data');
    expect(session.openTunnels).toBe(1);
    const cut = new Promise((resolve) => reply.once('close', resolve));
    await bench.sessions.end(session.id);
    await Promise.all([closed, cut]);
    expect(reply.complete).toBe(false);
  });

  test('a finished reply no longer counts as a tunnel', async () => {
    const { session, token } = await bench.sessions.create({ name: null, ttlSeconds: 60 });
    const request = send({ token: token ?? '' });
    request.end('{}');
    (await waitForArrival()).response.end('{}');
    await textOf(await replyTo(request));
    await new Promise((resolve) => setImmediate(resolve));
    expect(session.openTunnels).toBe(0);
  });
});

describe('/v1/mcp refuses', () => {
  test.each([
    ['nobody', { token: null }, 401, 'unauthenticated'],
    ['an unknown token', { token: `svc_host_${'x'.repeat(43)}` }, 401, 'unauthenticated'],
    ['another method', { method: 'PUT' }, 405, 'method_not_allowed'],
    ['a page of another site', { headers: { origin: 'https://evil.example' } }, 403, 'origin_not_allowed'],
    ['a page with an opaque origin', { headers: { origin: 'null' } }, 403, 'origin_not_allowed'],
    [
      'a page whose origin only starts like ours',
      { headers: { origin: 'http://localhost.evil.example' } },
      403,
      'origin_not_allowed',
    ],
    ['another Host name', { headers: { host: 'evil.example' } }, 421, 'misdirected_host'],
  ])('%s', async (_, sent, status, code) => {
    expect(await answerOf(send(sent))).toEqual({ status, code });
    expect(arrivals).toEqual([]);
  });

  test('a message over the size limit, with and without a declared length', async () => {
    const told = send({ headers: { 'content-length': String(MAX_MCP_BODY_BYTES + 1) } });
    told.flushHeaders();
    expect((await replyTo(told)).statusCode).toBe(413);
    told.destroy();
    const untold = send();
    untold.write(Buffer.alloc(MAX_MCP_BODY_BYTES));
    const answer = answerOf(untold, 'x');
    (await waitForArrival()).request.resume();
    expect(await answer).toEqual({ status: 413, code: 'body_too_large' });
  });

  test('more requests than a session may have open', async () => {
    const { session, token } = await bench.sessions.create({ name: null, ttlSeconds: 60 });
    const open = new OpenRequests();
    const others = Array.from({ length: 5 }, () => open.enter(session, () => undefined));
    expect(await answerOf(send({ token: token ?? '' }))).toEqual({ status: 429, code: 'too_many_tunnels' });
    for (const leave of others) leave?.();
    const request = send({ token: token ?? '' });
    request.end('{}');
    (await waitForArrival()).response.end('{}');
    expect((await replyTo(request)).statusCode).toBe(200);
  });

  test('requests while there is no gateway, and says why', async () => {
    socket = () => Promise.resolve({ ok: false, error: 'the gateway is down' });
    expect(await answerOf(send())).toEqual({ status: 503, code: 'gateway_unavailable' });
    socket = () => Promise.resolve(ok(join(bench.home, 'nothing.sock')));
    expect(await answerOf(send())).toEqual({ status: 503, code: 'gateway_unavailable' });
  });

  test('a page on this machine is allowed', async () => {
    const request = send({ headers: { origin: 'http://localhost:6274' } });
    request.end('{}');
    (await waitForArrival()).response.end('{}');
    expect((await replyTo(request)).statusCode).toBe(200);
  });
});

describe('the endpoints for gateways', () => {
  const id = `mcp_${'0'.repeat(26)}`;
  test.each([
    ['GET', '/v1/mcp/servers'],
    ['GET', '/v1/mcp/gateway'],
    ['POST', `/v1/mcp/servers/${id}/release`],
    ['POST', `/v1/mcp/servers/${id}/consent`],
    ['DELETE', `/v1/mcp/servers/${id}/consent`],
    ['GET', `/v1/mcp/logs/${id}`],
    ['POST', '/v1/mcp/events'],
    ['POST', '/v1/mcp/health'],
    ['POST', '/v1/mcp/approvals'],
  ])('%s %s refuses a session and an anonymous caller', async (method, path) => {
    const { token } = await bench.sessions.create({ name: null, ttlSeconds: 60, mcpServers: [id] });
    for (const [who, code] of [
      [token ?? '', 'host_token_required'],
      [null, 'unauthenticated'],
    ] as const) {
      const authorization: Record<string, string> = who === null ? {} : { authorization: `Bearer ${who}` };
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: authorization });
      expect(await reply.json()).toMatchObject({ error: { code } });
    }
  });
});

test('the open requests of a session are counted apart from its other tunnels', () => {
  const session = { openTunnel: () => () => undefined };
  const open = new OpenRequests();
  const leaves = Array.from({ length: MAX_MCP_REQUESTS_OF_SESSION }, () => open.enter(session, () => undefined));
  expect(leaves).not.toContain(null);
  expect(open.enter(session, () => undefined)).toBeNull();
  leaves[0]?.();
  expect(open.enter(session, () => undefined)).not.toBeNull();
});
