import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { freePort } from '../support/free_port.ts';
import { listen } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { FakePorts, localServer, remoteServer } from './gateway/fake_ports.ts';
import { type HttpGateway, startHttpGateway } from './gateway/http_gateway.ts';
import { modernClient, type TestClient } from './gateway/test_clients.ts';

const HOSTILE_SERVER = fileURLToPath(new URL('gateway/hostile_server.ts', import.meta.url));
const SECRET = 'S3CR3T-of-a-remote-server';
const message = z.looseObject({ id: z.union([z.number(), z.string()]).optional(), method: z.string().optional() });

let home: string;
let gateway: HttpGateway | null = null;
let client: TestClient | null = null;
let remote: Server | null = null;
let child: ChildProcess | null = null;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-mcp-remote-'));
});
afterEach(async () => {
  await client?.close();
  await gateway?.stop();
  remote?.closeAllConnections();
  remote?.close();
  child?.kill('SIGKILL');
  [client, gateway, remote, child] = [null, null, null, null];
  rmSync(home, { recursive: true, force: true });
});

async function open(ports: FakePorts): Promise<TestClient> {
  gateway = await startHttpGateway({ ports, home, limits: { remoteProbeMs: 400, maxFailures: 1 } });
  client = await modernClient(gateway.endpointFor(), 'auto', {});
  return client;
}

interface Remote {
  readonly server: McpServer;
  /** Method and authorisation of each request. */
  readonly seen: string[];
  readonly methods: () => readonly string[];
}

type Answer = (
  method: string,
  reply: (result: object) => void,
  response: ServerResponse,
  request: IncomingMessage,
) => boolean;

/** A server of the earlier generation over HTTP that does not answer unknown requests; `answer` overrides its behaviour. */
async function startRemote(answer: Answer = () => false): Promise<Remote> {
  const seen: string[] = [];
  remote = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { id, method = '' } = body === '' ? {} : message.parse(JSON.parse(body));
      seen.push(`${method === '' ? request.method : method} ${request.headers.authorization}`);
      const reply = (result: object): void => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      };
      if (!answer(method, reply, response, request)) answerPlainly(method, reply, response, request);
    });
  });
  const port = await listen(remote);
  const made = remoteServer('far', `http://127.0.0.1:${port}/mcp`);
  const headers = { Authorization: `Bearer vault://mcp-servers/${made.id}/TOKEN` };
  return { server: { ...made, headers }, seen, methods: () => seen.map((line) => line.split(' ')[0] ?? '') };
}

const answerPlainly: Answer = (method, reply, response, request) => {
  if (method === 'initialize') {
    response.setHeader('mcp-session-id', 'a-session');
    reply({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'far', version: '1' } });
  } else if (method === 'tools/list') reply({ tools: [{ name: 'who', inputSchema: { type: 'object' } }] });
  else if (method === 'tools/call')
    reply({ content: [{ type: 'text', text: `called with ${request.headers.authorization}` }] });
  else if (method.startsWith('notifications/')) response.writeHead(202).end();
  else if (method === '') response.writeHead(405).end();
  return true;
};

test('a server that does not answer when asked for its revision gets the earlier generation; its secret stays masked', async () => {
  const far = await startRemote();
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const { content } = await (await open(ports)).callTool('far__who');
  expect(content[0]?.text).toBe(`called with Bearer ${'*'.repeat(SECRET.length)}`);
  expect(far.methods().slice(0, 2)).toEqual(['server/discover', 'initialize']);
  expect(new Set(far.seen.map((line) => line.split(' ').slice(1).join(' ')))).toEqual(new Set([`Bearer ${SECRET}`]));
});

test('a session that the server forgot is opened again, and the call is resent exactly once', async () => {
  let forgotten = 1;
  const far = await startRemote((method, _reply, response) => {
    if (method !== 'tools/call' || forgotten === 0) return false;
    forgotten -= 1;
    response.writeHead(404).end();
    return true;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const caller = await open(ports);
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
  expect(ports.calls().map(({ outcome }) => outcome)).toEqual(['ok']);
  forgotten = 5;
  expect(await caller.callTool('far__who')).toMatchObject({ isError: true });
  expect(far.methods().filter((method) => method === 'tools/call')).toHaveLength(4);
});

test('a server that answers an unknown session with 400 gets a new session; one that refuses a call so does not', async () => {
  let isLost = false;
  let refusals = 0;
  const far = await startRemote((method, reply, response) => {
    if (method === 'initialize') isLost = false;
    const isRefused = isLost || (method === 'tools/call' && refusals > 0);
    if (!isRefused && method !== 'ping') return false;
    if (!isRefused) reply({});
    else response.writeHead(400).end('Bad Request: No valid session ID provided');
    return true;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const caller = await open(ports);
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
  // The server has restarted.
  isLost = true;
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
  expect(ports.calls().map(({ outcome }) => outcome)).toEqual(['ok', 'ok']);
  refusals = 1;
  expect(await caller.callTool('far__who')).toMatchObject({ isError: true });
  expect(far.methods().filter((method) => method === 'initialize')).toHaveLength(2);
});

test('a server that refuses the credential needs authorisation, and is reached once a new one is stored', async () => {
  const far = await startRemote((_method, _reply, response, request) => {
    if (request.headers.authorization === `Bearer ${SECRET}-2`) return false;
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end(`not with ${SECRET}`);
    return true;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const caller = await open(ports);
  expect(await caller.listTools()).toEqual([]);
  await waitFor('the state to be told', () => ports.health[0]?.state === 'needs_authorisation');
  expect(JSON.stringify([ports.health, ports.events])).not.toContain(SECRET);
  ports.secrets = { TOKEN: `${SECRET}-2` };
  ports.change([far.server]);
  await waitFor('it to be listed', async () => (await caller.listTools()).length === 1);
});

test('a list in a session that the server forgot is asked for again in a new one', async () => {
  let forgotten = 1;
  const far = await startRemote((method, _reply, response) => {
    if (method !== 'tools/list' || forgotten === 0) return false;
    forgotten -= 1;
    response.writeHead(404).end();
    return true;
  });
  const caller = await open(new FakePorts([far.server], { TOKEN: SECRET }));
  expect((await caller.listTools()).map(({ name }) => name)).toEqual(['far__who']);
  expect(far.methods().filter((method) => method === 'initialize')).toHaveLength(2);
});

test('a server that refuses the credential after the handshake needs authorisation', async () => {
  const far = await startRemote((method, _reply, response) => {
    if (method !== 'tools/list') return false;
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    return true;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  expect(await (await open(ports)).listTools()).toEqual([]);
  await waitFor('the state to be told', () => ports.health[0]?.state === 'needs_authorisation');
});

test('a call that needs more access says how to grant it, and is sent again with the token of a new sign-in', async () => {
  const far = await startRemote((method, _reply, response, request) => {
    if (method !== 'tools/call' || request.headers.authorization === `Bearer ${SECRET}-2`) return false;
    const challenge = 'Bearer error="insufficient_scope", scope="far:write"';
    response.writeHead(403, { 'www-authenticate': challenge }).end();
    return true;
  });
  const server = { ...far.server, headers: {} };
  const ports = new FakePorts([server]);
  ports.bearer = SECRET;
  const caller = await open(ports);
  const refused = await caller.callTool('far__who');
  expect(refused).toMatchObject({ isError: true });
  expect(refused.content[0]?.text).toContain('svc mcp authorize far --add-scope far:write');
  ports.bearer = `${SECRET}-2`;
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
});

test.each<readonly [string, (response: ServerResponse) => unknown, string]>([
  ['closes the connection', (response) => response.destroy(), 'cannot be reached: socket hang up'],
  ['is down behind a proxy', (response) => response.writeHead(503).end(), 'cannot be reached: it answers 503'],
])('a server that %s is reported, and used again when it is back', async (_, fail, why) => {
  let isDown = false;
  const far = await startRemote((_method, _reply, response) => {
    if (isDown) fail(response);
    return isDown;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const caller = await open(ports);
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
  isDown = true;
  const failed = await caller.callTool('far__who');
  expect([failed.isError, failed.content[0]?.text]).toEqual([true, expect.stringContaining(why)]);
  await waitFor('the state to be told', () => ports.health[0]?.state === 'failed');
  expect(ports.health[0]?.lastError).toContain(why);
  isDown = false;
  ports.aheadMs = 60_000;
  expect((await caller.callTool('far__who')).content[0]?.text).toContain('called with');
  await waitFor('it to run', () => ports.health[0]?.state === 'running' && ports.health[0].lastError === null);
});

test('eight remote servers that never answer do not hold up a local one', async () => {
  remote = createServer(() => undefined);
  const url = `http://127.0.0.1:${await listen(remote)}/mcp`;
  const silent = Array.from({ length: 8 }, (_, index) => remoteServer(`silent${index}`, url));
  const well = localServer('well', [process.execPath, HOSTILE_SERVER, 'well']);
  gateway = await startHttpGateway({
    ports: new FakePorts([...silent, well]),
    home,
    limits: { listMs: 100, probeMs: 400 },
  });
  client = await modernClient(gateway.endpointFor(), 'auto', {});
  await client.listTools();
  expect((await client.callTool('well__say', { text: 'hello' })).content[0]?.text).toBe('hello');
});

test('a redirect is not followed, not even to the same origin', async () => {
  const far = await startRemote((_method, _reply, response, request) => {
    response.writeHead(307, { location: `http://${request.headers.host}/elsewhere` }).end();
    return true;
  });
  const caller = await open(new FakePorts([far.server], { TOKEN: SECRET }));
  expect(await caller.listTools()).toEqual([]);
});

test('an endless reply ends the call, but not the gateway', async () => {
  const far = await startRemote((method, _reply, response) => {
    if (method !== 'tools/call') return false;
    response.setHeader('content-type', 'text/event-stream');
    const more = (): void => {
      if (!response.destroyed) response.write(`data: ${'x'.repeat(1024 * 1024)}`, () => setImmediate(more));
    };
    more();
    return true;
  });
  const ports = new FakePorts([far.server], { TOKEN: SECRET });
  const caller = await open(ports);
  expect(await caller.callTool('far__who', {})).toMatchObject({ isError: true });
  expect(ports.calls()[0]).toMatchObject({ outcome: 'error' });
  expect(ports.events).toContainEqual(expect.objectContaining({ type: 'mcp.server.failed', reason: 'output_limit' }));
});

test('the older transport, SSE, is used if the configuration says so', async () => {
  const file = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));
  const port = await freePort();
  child = spawn('node', [file, 'sse'], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await waitFor('the server to listen', () => said.includes('running on port'));
  const server = remoteServer('old', `http://127.0.0.1:${port}/sse`, { transport: 'sse' });
  const { content } = await (await open(new FakePorts([server]))).callTool('old__echo', { message: 'hello' });
  expect(content[0]?.text).toBe('Echo: hello');
});
