import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, Server } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listen } from '../support/tls_upstream.ts';
import { sampleOf } from '../support/full_counts.ts';
import { freePort } from '../support/free_port.ts';
import { waitFor } from '../support/wait_for.ts';
import { z } from 'zod';
import { FakePorts, localServer, remoteServer } from './gateway/fake_ports.ts';
import { type HttpGateway, startHttpGateway } from './gateway/http_gateway.ts';
import { earlierClient, modernClient, type GatewayEndpoint, type TestClient } from './gateway/test_clients.ts';

const packageFile = (path: string) => fileURLToPath(import.meta.resolve(`@modelcontextprotocol/${path}`));
const EVERYTHING = packageFile('server-everything/dist/index.js');
const FILESYSTEM = packageFile('server-filesystem/dist/index.js');
const LISTING = fileURLToPath(new URL('listing_server.cjs', import.meta.url));
const STDIO_GATEWAY = fileURLToPath(new URL('gateway/stdio_gateway.ts', import.meta.url));

let home: string;
let folder: string;
let remote: ChildProcess;
let remoteUrl: string;
let later: { readonly url: string; stop(): Promise<void> };
let http: HttpGateway;
let ports: FakePorts;

const servers = () => [
  localServer('everything', ['node', EVERYTHING, 'stdio']),
  localServer('files', ['node', FILESYSTEM, folder]),
  remoteServer('far', remoteUrl),
  remoteServer('later', later.url),
];

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-mcp-e2e-'));
  folder = mkdtempSync(join(tmpdir(), 'svc-mcp-files-'));
  writeFileSync(join(folder, 'hello.txt'), 'hello from a file');
  later = await startLaterServer();
  [remote, remoteUrl] = await startEverythingOverHttp();
  ports = new FakePorts(servers());
  http = await startHttpGateway({ ports, home: join(home, 'http') });
});

afterAll(async () => {
  await http.stop();
  remote.kill('SIGKILL');
  await later.stop();
  rmSync(home, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

const stdio = (): GatewayEndpoint => ({
  kind: 'stdio',
  command: 'node',
  args: [STDIO_GATEWAY, JSON.stringify({ home: join(home, 'stdio'), servers: servers() })],
});

const CLIENTS: readonly (readonly [string, () => Promise<TestClient>])[] = [
  ['the later SDK in the later generation, stdio', () => modernClient(stdio(), 'auto')],
  ['the earlier SDK, stdio', () => earlierClient(stdio())],
  ['the later SDK in the later generation, HTTP', () => modernClient(http.endpointFor(), 'auto')],
  ['the earlier SDK, HTTP', () => earlierClient(http.endpointFor())],
  ['the later SDK in the earlier generation, stdio', () => modernClient(stdio(), 'legacy')],
  ['the later SDK in the earlier generation, HTTP', () => modernClient(http.endpointFor(), 'legacy')],
];

// The earlier generation is also that of the earlier SDK.
describe.each(sampleOf(CLIENTS, 4))('%s', (_name, connect) => {
  let client: TestClient;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  test('lists the tools of every server under its name', async () => {
    const names = (await client.listTools()).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['everything__echo', 'files__read_text_file', 'far__echo', 'later__greet']),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  test('calls tools of local and remote servers', async () => {
    for (const server of ['everything', 'far']) {
      const echoed = await client.callTool(`${server}__echo`, { message: 'hello' });
      expect(echoed.content).toEqual([{ type: 'text', text: 'Echo: hello' }]);
    }
    const read = await client.callTool('files__read_text_file', { path: join(folder, 'hello.txt') });
    expect(read.content[0]?.text).toBe('hello from a file');
    const sum = await client.callTool('everything__get-structured-content', { location: 'Chicago' });
    expect(sum.structuredContent).toMatchObject({ temperature: expect.any(Number) });
  });

  test("the roots of a client do not widen a server's access", async () => {
    const read = await client.callTool('files__read_text_file', { path: '/etc/hostname' });
    expect(read.isError).toBe(true);
    const allowed = await client.callTool('files__list_allowed_directories');
    expect(allowed.content[0]?.text).toBe(`Allowed directories:\n${folder}`);
  });

  test('forwards requests of an earlier-generation server during a call', async () => {
    for (const server of ['everything', 'far']) {
      const sampled = await client.callTool(`${server}__trigger-sampling-request`, { prompt: 'x', maxTokens: 5 });
      expect(sampled.content[0]?.text).toContain('a sampled answer');
      const elicited = await client.callTool(`${server}__trigger-elicitation-request`);
      expect(JSON.stringify(elicited.content)).toContain('Ada');
    }
    expect(client.asked.filter((kind) => kind !== 'roots')).toEqual([
      'sampling',
      'elicitation',
      'sampling',
      'elicitation',
    ]);
  });

  test('forwards the input requests of a later-generation server, in any number of rounds', async () => {
    const greeted = await client.callTool('later__greet', { greeting: 'Hello' });
    expect(greeted.content[0]?.text).toBe('Hello Ada, says a sampled answer (state: second)');
  });

  test('forwards progress, and lists resources and prompts of each server', async () => {
    const told: number[] = [];
    // The later SDK's client reports rounds of input in the same way; server-everything may ask for roots meanwhile.
    const onprogress = ({
      progress,
      message,
    }: {
      readonly progress: number;
      readonly message?: string | undefined;
    }) => {
      if (message?.startsWith('Fulfilling input required') !== true) told.push(progress);
    };
    // The client itself may drop progress that it reads together with the result.
    await waitFor('a call that is told progress twice', async () => {
      told.length = 0;
      const steps = { duration: 0.4, steps: 4 };
      await client.callTool('everything__trigger-long-running-operation', steps, { onprogress });
      expect(told).toEqual(told.toSorted((a, b) => a - b));
      return told.length >= 2;
    });
    expect(await client.listPrompts()).toEqual(
      expect.arrayContaining(['everything__args-prompt', 'far__simple-prompt']),
    );
    expect(await client.getPrompt('everything__args-prompt', { city: 'Oslo', state: 'x' })).toContain('Oslo');
    expect(await client.complete('everything__completable-prompt', 'department', 'E')).toContain('Engineering');
  });

  test('a resource of two servers is read by a URI that names the server, and refused otherwise', async () => {
    const uris = await client.listResources();
    const qualified = uris.filter((uri) => uri.startsWith('svc-mcp://far/') && uri.includes('architecture.md'));
    expect(qualified).toHaveLength(1);
    expect(await client.readResource(qualified[0]!)).toContain('Architecture');
    const plain = decodeURIComponent(qualified[0]!.split('/').at(-1)!);
    await expect(client.readResource(plain)).rejects.toThrow(/several servers have this resource/);
  });

  test('cancelling a call ends it and frees the server for the next one', async () => {
    const cancelled = new AbortController();
    const call = client.callTool(
      'everything__trigger-long-running-operation',
      { duration: 60, steps: 600 },
      { signal: cancelled.signal, onprogress: () => cancelled.abort() },
    );
    await expect(call).rejects.toThrow(/abort/i);
    // The server answers the next call at once: it no longer works on the cancelled one.
    expect((await client.callTool('everything__echo', { message: 'x' })).content[0]?.text).toBe('Echo: x');
  });

  test('an unknown tool is an error that names it', async () => {
    await expect(client.callTool('everything__no-such-tool')).rejects.toThrow(/Unknown tool/);
    await expect(client.callTool('nobody__echo')).rejects.toThrow(/Unknown tool/);
  });
});

test('calls are recorded with their outcome and without any argument', async () => {
  const client = await modernClient(http.endpointFor({ sessionId: 'ses_1', servers: null }), 'auto');
  ports.events.length = 0;
  await client.callTool('everything__echo', { message: 'a secret argument' });
  await client.callTool('everything__get-sum', { a: 'x', b: [] });
  const cancelled = new AbortController();
  const long = { duration: 60, steps: 600 };
  const call = client.callTool('everything__trigger-long-running-operation', long, {
    signal: cancelled.signal,
    onprogress: () => cancelled.abort(),
  });
  await expect(call).rejects.toThrow(/abort/i);
  await waitFor('the third call to be recorded', () => ports.calls().length === 3);
  await client.close();
  const recorded = ports
    .calls()
    .map(({ tool, outcome, sessionId, durationMs }) => [tool, outcome, sessionId, typeof durationMs]);
  expect(recorded).toEqual([
    ['echo', 'ok', 'ses_1', 'number'],
    ['get-sum', 'tool_error', 'ses_1', 'number'],
    ['trigger-long-running-operation', 'cancelled', 'ses_1', 'number'],
  ]);
  expect(JSON.stringify(ports.events)).not.toContain('a secret argument');
});

test("a caller sees and calls only the servers that it may use, even with another caller's session", async () => {
  const [everything] = servers();
  ports.change([...servers().slice(1), everything!]);
  const caller = { sessionId: 'ses_2', servers: [everything!.id] };
  const client = await modernClient(http.endpointFor(caller), 'auto');
  await waitFor('the server to be listed', async () => (await client.listTools()).length > 0);
  const names = (await client.listTools()).map(({ name }) => name);
  expect(names.every((name) => name.startsWith('everything__'))).toBe(true);
  await expect(client.callTool('files__list_allowed_directories')).rejects.toThrow(/Unknown tool/);
  await client.close();
  const session = await beginSession(http, {});
  const stolen = await beginSession(http, { session, caller });
  expect(stolen).toBe('404');
});

test('a request from a page of another origin, or for another host, is refused', async () => {
  const headers = {
    ...http.endpointFor().headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const asked = await fetch(http.url, {
    method: 'POST',
    headers: { ...headers, origin: 'https://evil.example' },
    body: '{}',
  });
  expect(asked.status).toBe(403);
  const nobody = await fetch(http.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  expect(nobody.status).toBe(403);
});

/** Calls the tool with a region in its arguments and this one in a header. */
async function callWithRegion(region: string): Promise<{ readonly status: number; readonly text: string }> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const name = 'headed__look';
  const headers = {
    ...http.endpointFor().headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': name,
    'mcp-param-user_region': region,
  };
  const params = { name, arguments: { region: 'eu' }, _meta: meta };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });
  const reply = await fetch(http.url, { method: 'POST', headers, body });
  return { status: reply.status, text: await reply.text() };
}

test('a call whose headers differ from its arguments is refused with the status 400', async () => {
  const tools = join(folder, 'tools.json');
  const region = { type: 'string', 'x-mcp-header': 'User_Region' };
  writeFileSync(tools, JSON.stringify([{ name: 'look', inputSchema: { type: 'object', properties: { region } } }]));
  const all = servers();
  ports.change([...all, localServer('headed', ['node', LISTING, tools])]);
  await vi.waitFor(async () => expect((await callWithRegion('eu')).text).toContain('called look'), {
    timeout: 60_000,
  });
  const refused = await callWithRegion('us');
  expect([refused.status, JSON.parse(refused.text)]).toMatchObject([400, { id: 7, error: { code: -32_020 } }]);
  const calls = ports.events.length;
  expect((await callWithRegion('eu')).text).toContain('called look');
  expect(ports.events.slice(calls).map(({ type }) => type)).toEqual(['mcp.tool.called']);
  ports.change(all);
});

test('clients of both generations are notified when servers are added and removed', async () => {
  const all = servers();
  ports.change(all.slice(0, 1));
  const clients = [
    await modernClient(http.endpointFor(), 'auto'),
    await modernClient(http.endpointFor(), 'legacy'),
    await earlierClient(http.endpointFor()),
  ];
  for (const client of clients) await client.listTools();
  const before = clients.map((client) => client.toolChanges());
  ports.change(all.slice(0, 2));
  await waitFor('all clients to be told', () =>
    clients.every((client, index) => client.toolChanges() > before[index]!),
  );
  for (const client of clients) {
    const names = (await client.listTools()).map(({ name }) => name);
    expect(names).toContain('files__write_file');
    await client.close();
  }
});

test('changes of a resource reach the subscribed clients of both generations', async () => {
  ports.change(servers().slice(0, 1));
  const clients = [await modernClient(http.endpointFor(), 'auto'), await earlierClient(http.endpointFor())];
  const [uri] = await clients[0]!.listResources();
  for (const client of clients) await client.watch(uri!);
  await clients[1]!.callTool('everything__toggle-subscriber-updates');
  await waitFor('both to be told', () => clients.every(({ updated }) => updated.includes(uri!)));
  expect(clients.map(({ updated }) => updated[0])).toEqual([uri, uri]);
  for (const client of clients) await client.close();
});

/** A session of the earlier generation: its id, or the status of the refusal. */
async function beginSession(
  gateway: HttpGateway,
  { session, caller }: { readonly session?: string; readonly caller?: Parameters<HttpGateway['endpointFor']>[0] },
): Promise<string> {
  const response = await fetch(gateway.url, {
    method: 'POST',
    headers: {
      ...gateway.endpointFor(caller).headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
    },
    body: JSON.stringify(
      session === undefined
        ? {
            jsonrpc: '2.0',
            id: 1,
            method: 'initialize',
            params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } },
          }
        : { jsonrpc: '2.0', id: 2, method: 'tools/list' },
    ),
  });
  await response.body?.cancel();
  return response.headers.get('mcp-session-id') ?? String(response.status);
}

/** The everything server over streamable HTTP, in the earlier generation. */
async function startEverythingOverHttp(): Promise<[ChildProcess, string]> {
  const port = await freePort();
  const child = spawn('node', [EVERYTHING, 'streamableHttp'], {
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await waitFor('the remote server to listen', () => /listening/i.test(said));
  return [child, `http://127.0.0.1:${port}/mcp`];
}

const responses = z.record(z.string(), z.looseObject({ content: z.record(z.string(), z.string()).optional() }));

/** A server of the later generation: its tool requires two rounds of input and the return of its state. */
async function startLaterServer(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const handler = createMcpHandler(
    () => {
      const server = new Server({ name: 'later', version: '1' }, { capabilities: { tools: {} } });
      const inputSchema = { type: 'object' as const, properties: { greeting: { type: 'string' as const } } };
      server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'greet', inputSchema }] }));
      server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
        const state = mcpReq.requestState<string>();
        if (state === undefined) {
          const requestedSchema = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
          const who = inputRequired.elicit({ message: 'Who are you?', requestedSchema });
          return inputRequired({ inputRequests: { who }, requestState: 'first' });
        }
        const { who, said } = responses.parse(mcpReq.inputResponses ?? {});
        if (state === 'first') {
          const messages = [
            { role: 'user' as const, content: { type: 'text' as const, text: String(who?.['content']?.['name']) } },
          ];
          const sample = inputRequired.createMessage({ messages, maxTokens: 10 });
          return inputRequired({
            inputRequests: { said: sample },
            requestState: `second:${who?.['content']?.['name']}`,
          });
        }
        const [step, name] = state.split(':');
        const text = `${String(params.arguments?.['greeting'])} ${name}, says ${said?.['content']?.['text']} (state: ${step})`;
        return { content: [{ type: 'text', text }] };
      });
      return server;
    },
    { legacy: 'reject' },
  );
  const server = createServer(z.custom<RequestListener>().parse(toNodeHandler(handler)));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
