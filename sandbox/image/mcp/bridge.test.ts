import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../../../machine/connection/listen.ts';
import { Bridge } from './bridge.ts';
import { bodyText, Endpoint } from './endpoint.ts';

interface Seen {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: { readonly id?: unknown; readonly method?: string; readonly params?: unknown };
}
type Answer = (seen: Seen, response: ServerResponse) => void;

const OWN = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };

let server: Server;
let port: number;
let seen: Seen[];
let answer: Answer;
let written: Record<string, unknown>[];
let warned: string[];
let pauses: number[];
let sessions: number;
/** A session that the server has forgotten. */
let forgotten: string;
let bridge: Bridge;

beforeEach(async () => {
  [seen, written, warned, pauses] = [[], [], [], []];
  [sessions, forgotten] = [0, 'none'];
  answer = sessionServer();
  server = createServer((request, response) => void take(request, response));
  port = await listen(server, 0, '127.0.0.1');
  bridge = bridgeTo(port);
});

afterEach(async () => {
  await bridge.close();
  server.closeAllConnections();
  server.close();
});

function bridgeTo(to: number): Bridge {
  return new Bridge({
    endpoint: new Endpoint(new URL(`http://127.0.0.1:${to}/v1/mcp`), 'svc_session_t'),
    write: (line) => {
      written.push(JSON.parse(line));
      return Promise.resolve();
    },
    warn: (text) => void warned.push(text),
    pause: (ms) => {
      pauses.push(ms);
      return new Promise((resolve) => setImmediate(resolve));
    },
  });
}

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await bodyText(request, 100_000);
  const one = { method: request.method ?? '', headers: request.headers, body: text === '' ? {} : JSON.parse(text) };
  seen.push(one);
  answer(one, response);
}

function json(response: ServerResponse, body: object, status = 200, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function stream(response: ServerResponse, ...events: (object | string)[]): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  for (const event of events) {
    response.write(typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`);
  }
  return response;
}

const result = (id: unknown, value: object = {}): object => ({ jsonrpc: '2.0', id, result: value });

/** A server with sessions but without a stream; `more` answers other requests. */
function sessionServer(more: Answer = ({ body }, response) => json(response, result(body.id))): Answer {
  return (one, response) => {
    const { method, body, headers } = one;
    if (headers['mcp-session-id'] === forgotten) json(response, {}, 404);
    else if (method === 'GET') response.writeHead(405).end();
    else if (method === 'DELETE') response.writeHead(204).end();
    else if (body.method === 'initialize') {
      sessions += 1;
      const capabilities = { tools: { listChanged: true }, prompts: {} };
      json(response, result(body.id, { protocolVersion: '2025-06-18', capabilities }), 200, {
        'mcp-session-id': `s${sessions}`,
      });
    } else if (body.method?.startsWith('notifications/') === true) response.writeHead(202).end();
    else more(one, response);
  };
}

function say(message: object): void {
  bridge.take(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

async function greet(): Promise<void> {
  say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
  await expect.poll(() => written).toHaveLength(1);
  say({ method: 'notifications/initialized' });
  await expect.poll(() => seen.at(-1)?.method).toBe('GET');
}

const methods = (): unknown[] => seen.map(({ method, body }) => body.method ?? method);

describe('a client with a session', () => {
  it('that does not wait for the answer to initialize has the session in what it sends next', async () => {
    const greets = sessionServer();
    let greeting: (() => void) | undefined;
    answer = (one, response) => {
      if (one.body.method === 'initialize') greeting = () => greets(one, response);
      else greets(one, response);
    };
    say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
    say({ id: 1, method: 'tools/list' });
    await expect.poll(() => greeting).toBeDefined();
    // Time for what would not wait.
    await new Promise((resolve) => setTimeout(resolve, 20));
    greeting?.();
    await bridge.waitForAnswers();
    expect(seen.map(({ body, headers }) => [body.method, headers['mcp-session-id']])).toEqual([
      ['initialize', undefined],
      ['tools/list', 's1'],
    ]);
  });

  it('goes on once initialize is answered, or cancelled, though the stream of the answer stays open', async () => {
    const other = sessionServer();
    answer = (one, response) => {
      if (one.body.method !== 'initialize') other(one, response);
      else if (one.body.id === 0) stream(response, result(0, { protocolVersion: '2025-06-18', capabilities: {} }));
    };
    say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
    say({ id: 1, method: 'tools/list' });
    await expect.poll(() => written.map(({ id }) => id)).toEqual([0, 1]);
    say({ id: 2, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
    await expect.poll(() => seen.at(-1)?.body.id).toBe(2);
    say({ method: 'notifications/cancelled', params: { requestId: 2 } });
    say({ id: 3, method: 'tools/list' });
    await expect.poll(() => written.map(({ id }) => id)).toEqual([0, 1, 3]);
  });

  it('may be asked by the server before initialize is answered', async () => {
    let initializing: ServerResponse | undefined;
    answer = (one, response) => {
      if (one.body.method === 'initialize') {
        initializing = stream(response, { jsonrpc: '2.0', id: 'p', method: 'ping' });
        return;
      }
      response.writeHead(202).end();
      initializing?.end(`data: ${JSON.stringify(result(0, { capabilities: {} }))}\n\n`);
    };
    say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
    await expect.poll(() => written.map(({ id }) => id)).toEqual(['p']);
    say({ id: 'p', result: {} });
    await expect.poll(() => written.map(({ id }) => id)).toEqual(['p', 0]);
  });

  it('is initialised, and its session is in every later call', async () => {
    await greet();
    say({ id: 1, method: 'tools/list' });
    await bridge.waitForAnswers();
    expect(written).toEqual([
      expect.objectContaining({ id: 0, result: expect.objectContaining({ protocolVersion: '2025-06-18' }) }),
      result(1),
    ]);
    expect(methods()).toEqual(['initialize', 'notifications/initialized', 'GET', 'tools/list']);
    expect(seen.map(({ headers }) => headers['mcp-session-id'])).toEqual([undefined, 's1', 's1', 's1']);
    expect(seen.map(({ headers }) => headers['mcp-protocol-version'])).toEqual([
      undefined,
      ...Array(3).fill('2025-06-18'),
    ]);
    for (const { headers } of seen) {
      expect(headers).toMatchObject({ authorization: 'Bearer svc_session_t', host: `127.0.0.1:${port}` });
      expect(headers['mcp-method']).toBeUndefined();
    }
  });

  it('gets messages before the answer and answers the server’s requests', async () => {
    await greet();
    let asking: ServerResponse | null = null;
    answer = sessionServer(({ body }, response) => {
      if (body.method === 'tools/call') {
        asking = stream(response, { jsonrpc: '2.0', method: 'notifications/progress', params: {} });
        asking.write(': a comment\n\nevent: other\ndata: {}\n\n');
        asking.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'roots/list' })}\n\n`);
      } else {
        response.writeHead(202).end();
        asking?.end(`data: ${JSON.stringify(result(1, { done: true }))}\n\n`);
      }
    });
    say({ id: 1, method: 'tools/call', params: { name: 'x' } });
    await expect.poll(() => written.at(-1)).toMatchObject({ id: 'q', method: 'roots/list' });
    say({ id: 'q', result: { roots: [] } });
    await bridge.waitForAnswers();
    expect(written.slice(1)).toEqual([
      expect.objectContaining({ method: 'notifications/progress' }),
      expect.objectContaining({ id: 'q' }),
      result(1, { done: true }),
    ]);
    expect(seen.at(-1)).toMatchObject({ body: result('q', { roots: [] }), headers: { 'mcp-session-id': 's1' } });
  });

  it("gets the server's own messages on a stream that resumes after the last event", async () => {
    const opened: ServerResponse[] = [];
    answer = (one, response) => {
      if (one.method === 'GET') opened.push(stream(response, 'retry: 20\n\n'));
      else sessionServer()(one, response);
    };
    await greet();
    await expect.poll(() => opened).toHaveLength(1);
    opened[0]?.end('id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
    await expect.poll(() => opened).toHaveLength(2);
    expect(written.at(-1)).toMatchObject({ method: 'notifications/tools/list_changed' });
    expect(seen.at(-1)?.headers).toMatchObject({ 'last-event-id': '7', 'mcp-session-id': 's1' });
    expect(pauses).toEqual([20]);
  });

  it("reopens the server's stream after a failure but not after a refusal", async () => {
    const statuses = [503, 401];
    answer = (one, response) => {
      if (one.method === 'GET') response.writeHead(statuses.shift() ?? 200).end();
      else sessionServer()(one, response);
    };
    await greet();
    await expect.poll(() => warned).toEqual(['no more change notifications: the sidecar answered 401']);
    expect(methods().filter((method) => method === 'GET')).toHaveLength(2);
    expect(pauses).toEqual([2_000]);
  });

  it('is initialised again if the server forgot it, and told that lists may have changed', async () => {
    await greet();
    forgotten = 's1';
    say({ id: 1, method: 'tools/list' });
    say({ id: 2, method: 'tools/list' });
    await bridge.waitForAnswers();
    expect(written.slice(1).map(({ id, method, result: value }) => [id ?? method, value])).toEqual([
      ['notifications/tools/list_changed', undefined],
      [1, {}],
      [2, {}],
    ]);
    expect(methods().filter((method) => method === 'initialize')).toHaveLength(2);
    expect(
      seen.filter(({ body }) => body.method === 'tools/list').map(({ headers }) => headers['mcp-session-id']),
    ).toEqual(['s1', 's1', 's2', 's2']);
  });

  it('tells the server about a cancelled call and gets no answer', async () => {
    await greet();
    let waiting: ServerResponse | null = null;
    answer = sessionServer((_one, response) => (waiting = stream(response)));
    say({ id: 1, method: 'tools/call', params: { name: 'slow' } });
    await expect.poll(() => waiting).not.toBeNull();
    say({ method: 'notifications/cancelled', params: { requestId: 1 } });
    await expect.poll(() => seen.at(-1)?.body.method).toBe('notifications/cancelled');
    await bridge.waitForAnswers();
    await expect.poll(() => waiting?.closed).toBe(true);
    expect(written).toHaveLength(1);
  });

  it('ends its session', async () => {
    await greet();
    await bridge.close();
    expect(seen.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 's1' } });
  });
});

describe('a client without sessions', () => {
  beforeEach(() => {
    answer = ({ body }, response) => json(response, result(body.id, { ok: true }));
  });

  it('is described in each request', async () => {
    say({ id: 1, method: 'tools/call', params: { name: 'a b', ...OWN } });
    await bridge.waitForAnswers();
    expect(written).toEqual([result(1, { ok: true })]);
    expect(seen[0]?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'a b',
    });
    expect(seen).toHaveLength(1);
  });

  it('cancels by closing the request and gets no answer', async () => {
    const left = Promise.withResolvers<undefined>();
    const waiting = Promise.withResolvers<undefined>();
    answer = (_one, response) => {
      stream(response, { jsonrpc: '2.0', method: 'notifications/progress', params: {} });
      response.on('close', () => left.resolve(undefined));
      waiting.resolve(undefined);
    };
    say({ id: 1, method: 'tools/call', params: { name: 'slow', ...OWN } });
    await waiting.promise;
    await expect.poll(() => written).toHaveLength(1);
    say({ method: 'notifications/cancelled', params: { requestId: 1, ...OWN } });
    await left.promise;
    await bridge.waitForAnswers();
    expect([written.length, seen.length, warned]).toEqual([1, 1, []]);
  });

  it('is served until everything but subscriptions is answered', async () => {
    answer = (one, response) => {
      if (one.body.method === 'subscriptions/listen') stream(response);
      else json(response, result(one.body.id));
    };
    say({ id: 1, method: 'subscriptions/listen', params: OWN });
    say({ id: 2, method: 'tools/list', params: OWN });
    await bridge.waitForAnswers();
    expect(written).toEqual([result(2)]);
  });
});

describe('messages', () => {
  it('are sent in order, notifications included', async () => {
    const held: (() => void)[] = [];
    answer = (one, response) => {
      if (one.body.method === 'notifications/x') held.push(() => response.writeHead(202).end());
      else held.push(() => json(response, result(one.body.id)));
    };
    say({ id: 1, method: 'first' });
    say({ method: 'notifications/x' });
    say({ id: 2, method: 'second' });
    await expect.poll(() => methods()).toEqual(['first', 'notifications/x']);
    held[1]?.();
    await expect.poll(() => methods()).toEqual(['first', 'notifications/x', 'second']);
    held[0]?.();
    held[2]?.();
    await bridge.waitForAnswers();
    expect(new Set(written.map(({ id }) => id))).toEqual(new Set([1, 2]));
  });

  it('do not wait for each other’s answers', async () => {
    let first: ServerResponse | null = null;
    answer = ({ body }, response) => (body.id === 1 ? (first = response) : json(response, result(body.id)));
    say({ id: 1, method: 'slow' });
    say({ id: 2, method: 'quick' });
    await expect.poll(() => written).toEqual([result(2)]);
    json(first!, result(1));
    await bridge.waitForAnswers();
    expect(written).toEqual([result(2), result(1)]);
  });

  it('that are invalid get an error', async () => {
    bridge.take('{');
    bridge.take('[]');
    say({ id: 1, method: 'slow' });
    say({ id: 1, method: 'again' });
    await bridge.waitForAnswers();
    expect(written).toMatchObject([
      { id: null, error: { code: -32_700 } },
      { id: null, error: { code: -32_600 } },
      { id: 1, error: { code: -32_600 } },
      result(1),
    ]);
  });
});

async function readErrorFor(given: Answer): Promise<unknown> {
  answer = given;
  say({ id: 1, method: 'tools/call', params: { name: 'x', ...OWN } });
  await bridge.waitForAnswers();
  expect(written).toHaveLength(1);
  return written[0];
}

describe('a request that is not answered', () => {
  it('because the sidecar refuses it gets the reason, also on stderr', async () => {
    const error = { code: 'unauthenticated', message: 'The session is over.' };
    expect(await readErrorFor((_one, response) => json(response, { error }, 401))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32_000, message: 'svc: The session is over.', data: { code: 'unauthenticated', status: 401 } },
    });
    expect(warned).toEqual(['the sidecar refused (401 unauthenticated): The session is over.']);
  });

  it.each([1, null])('because the server answers %j with an error gets that error', async (id) => {
    const error = { code: -32_001, message: 'mismatch', data: { a: 1 } };
    expect(await readErrorFor((_one, response) => json(response, { jsonrpc: '2.0', id, error }, 400))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error,
    });
  });

  it.each([
    ['the connection is closed', (_one: Seen, response: ServerResponse) => response.destroy(), 'cannot be reached'],
    ['the stream ends', (_one: Seen, response: ServerResponse) => stream(response).end(), 'may have been executed'],
    ['the body is no message', (_one: Seen, response: ServerResponse) => json(response, {}), 'may have been executed'],
    [
      'there is nothing',
      (_one: Seen, response: ServerResponse) => response.writeHead(202).end(),
      'may have been executed',
    ],
  ])('because %s is an error', async (_why, given: (one: Seen, response: ServerResponse) => unknown, text) => {
    expect(await readErrorFor((one, response) => void given(one, response))).toMatchObject({
      id: 1,
      error: { code: -32_000, message: expect.stringContaining(text) },
    });
  });

  it('because nothing listens says so', async () => {
    server.close();
    bridge = bridgeTo(port);
    say({ id: 1, method: 'ping' });
    await bridge.waitForAnswers();
    expect(written).toMatchObject([{ id: 1, error: { message: expect.stringContaining('ECONNREFUSED') } }]);
  });

  it('is answered once, even if the server answers twice', async () => {
    const twice: Answer = (_one, response) => void stream(response, result(1), result(1)).end();
    expect(await readErrorFor(twice)).toEqual(result(1));
  });
});
