import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Caller } from '../../machine/mcp_caller.ts';
import { Gateway } from '../gateway.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import { createHttpFront } from './http_front.ts';
import { HttpSessions } from './http_sessions.ts';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const callerOf = (sessionId: string): Caller => ({ sessionId, servers: [] });
const LONG_MS = 61_000;

let now = 0;
let gateway: Gateway;
let sessions: HttpSessions;

beforeEach(() => {
  now = 0;
  gateway = new Gateway({
    ports: {
      watchServers: () => Promise.resolve(),
      release: () => Promise.reject(new Error('nothing is started in this test')),
      approve: () => Promise.reject(new Error('nothing is called in this test')),
      reportTools: () => Promise.reject(new Error('nothing is listed in this test')),
      record: () => undefined,
      isAccepting: () => true,
      hasEnded: () => Promise.resolve(false),
      reportHealth: () => undefined,
      clock: { now: () => now },
    },
    launcher: { launch: () => Promise.reject(new Error('nothing is started in this test')) },
    keptLists: {
      read: () => null,
      write: () => Promise.resolve(),
      readInstructions: () => null,
      writeInstructions: () => Promise.resolve(),
    },
    revisions: { isLegacy: () => false, keepLegacy: () => Promise.resolve() },
    sources: [],
    limits: { ...DEFAULT_GATEWAY_LIMITS, maxSessions: 3, maxSessionsOfCaller: 3 },
    version: '0',
    pause: () => Promise.resolve(),
  });
  sessions = new HttpSessions(gateway, () => now);
});
afterEach(async () => {
  await sessions.close();
  await gateway.stop();
});

async function begin(caller: Caller): Promise<{ readonly status: number; readonly id: string }> {
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: HEADERS });
  const response = await sessions.handle(request, INITIALIZE, caller);
  await response.text();
  return { status: response.status, id: response.headers.get('mcp-session-id') ?? '' };
}

/** Opens the stream that a session's client listens on. */
function listen(caller: Caller, id: string): Promise<Response> {
  const request = new Request('http://localhost/mcp', { headers: { ...HEADERS, 'mcp-session-id': id } });
  return sessions.handle(request, undefined, caller);
}

async function beginThree(caller: Caller): Promise<readonly string[]> {
  return [(await begin(caller)).id, (await begin(caller)).id, (await begin(caller)).id];
}

test('abandoned sessions of a caller are ended to make room', async () => {
  const ids = await beginThree(callerOf('greedy'));
  expect((await begin(callerOf('late'))).status).toBe(503);
  now += LONG_MS;
  expect((await begin(callerOf('late'))).status).toBe(200);
  expect((await listen(callerOf('greedy'), ids[0] ?? '')).status).toBe(404);
  expect((await listen(callerOf('greedy'), ids[1] ?? '')).status).toBe(200);
});

test('a session with an open stream is in use until the stream closes', async () => {
  const ids = await beginThree(callerOf('a'));
  const streams = await Promise.all(ids.map((id) => listen(callerOf('a'), id)));
  now += LONG_MS;
  expect((await begin(callerOf('a'))).status).toBe(503);
  expect((await begin(callerOf('b'))).status).toBe(503);
  await streams[1]?.body?.cancel();
  now += LONG_MS;
  expect((await begin(callerOf('b'))).status).toBe(200);
  expect((await listen(callerOf('a'), ids[1] ?? '')).status).toBe(404);
});

test('a session of another caller is not found', async () => {
  const { id } = await begin(callerOf('a'));
  expect((await listen(callerOf('b'), id)).status).toBe(404);
});

test('a caller with an open stream is not ended to make room for another, which is refused if all have one', async () => {
  const front = createHttpFront({ gateway, now: () => (now += 1), maxCallers: 2 });
  const clients = new Map<string, Client>();
  const connect = async (name: string): Promise<Client> => {
    const client = new Client({ name, version: '1' }, { versionNegotiation: { mode: 'auto' } });
    const transport = new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
      fetch: (url, init) => {
        const request = new Request(url, init);
        request.headers.set('host', '127.0.0.1');
        return front.fetch(request, callerOf(name));
      },
    });
    await client.connect(transport);
    clients.set(name, client);
    return client;
  };
  const first = await (await connect('first')).listen({ toolsListChanged: true });
  await connect('second');
  const third = await (await connect('third')).listen({ toolsListChanged: true });
  const state = await Promise.race([first.closed, third.closed, Promise.resolve('both are open')]);
  expect(state).toBe('both are open');
  await expect(connect('fourth')).rejects.toThrow(/too many clients|503/);
  await third.close();
  await vi.waitFor(() => connect('fourth'), { timeout: 60_000 });
  await Promise.all(Array.from(clients.values(), (client) => client.close()));
  await front.close();
});

test('refuses a request that is expensive to parse before parsing it', async () => {
  const front = createHttpFront({ gateway, now: () => now });
  for (const body of ['['.repeat(200), `[${'{},'.repeat(200_000)}1]`]) {
    const request = new Request('http://127.0.0.1/mcp', { method: 'POST', headers: HEADERS, body });
    request.headers.set('host', '127.0.0.1');
    const reply = await front.fetch(request, callerOf('ses_a'));
    expect([reply.status, await reply.text()]).toEqual([
      413,
      expect.stringMatching(/nested more than|more than 100000 values/),
    ]);
  }
  await front.close();
});
