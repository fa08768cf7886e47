import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakePorts, localServer } from './gateway/fake_ports.ts';
import { type HttpGateway, startHttpGateway } from './gateway/http_gateway.ts';

const TELLING = fileURLToPath(new URL('gateway/telling_server.ts', import.meta.url));
const SECRET = 'S3CR3T-t0ken-of-a-server';
const MASK = '*'.repeat(SECRET.length);

let home: string;
let gateway: HttpGateway;
let client: Client;
let ports: FakePorts;
/** Every byte that the gateway sent, as text. */
let received: string;
/** The server's requests and notifications to the client. */
let told: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-mcp-secrets-'));
  received = '';
  told = [];
  const server = localServer('tells', ['node', TELLING]);
  ports = new FakePorts([{ ...server, env: { SECRET: `vault://mcp-servers/${server.id}/SECRET` } }], { SECRET });
  gateway = await startHttpGateway({ ports, home, limits: {} });
  const place = gateway.endpointFor();
  client = askedClient();
  const requestInit = { headers: { ...place.headers } };
  await client.connect(new StreamableHTTPClientTransport(place.url, { requestInit, fetch: readingFetch }));
});
afterEach(async () => {
  await client.close();
  await gateway.stop();
  rmSync(home, { recursive: true, force: true });
});

function askedClient(): Client {
  const made = new Client({ name: 'e2e', version: '1' }, { capabilities: { sampling: {}, elicitation: { form: {} } } });
  made.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    told.push(JSON.stringify(params));
    return { model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } };
  });
  made.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    told.push(JSON.stringify(params));
    return { action: 'accept', content: { name: 'Ada' } };
  });
  made.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void told.push(JSON.stringify(params)));
  return made;
}

/** `fetch`; keeps every byte of the replies. */
async function readingFetch(target: URL | string, init?: RequestInit): Promise<Response> {
  const response = await fetch(target, init);
  if (response.body === null) return response;
  const decoder = new TextDecoder();
  const kept = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      received += decoder.decode(chunk, { stream: true });
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(kept), response);
}

test('a secret is masked in lists, contents, prompts, completions and refusals', async () => {
  const lists = [
    await client.listTools(),
    await client.listResources(),
    await client.listResourceTemplates(),
    await client.listPrompts(),
    await client.readResource({ uri: 'tell://plain' }),
    await client.getPrompt({ name: 'tells__tell' }),
    await client.complete({
      ref: { type: 'ref/prompt', name: 'tells__tell' },
      argument: { name: 'a', value: '' },
    }),
  ];
  const subscribed = await client.subscribeResource({ uri: 'tell://plain' }).catch((error: Error) => error.message);
  const all = JSON.stringify([lists, subscribed]);
  for (const what of ['tool', 'resource', 'template', 'prompt', 'contents', 'message', 'completion', 'subscription']) {
    expect(all).toContain(`${what} ${MASK}`);
  }
  expect(`${received}${JSON.stringify([ports.events, ports.health])}`).not.toContain(SECRET);
});

test("a secret is masked in a server's requests and notifications during a call", async () => {
  await client.setLoggingLevel('debug');
  const result = await client.callTool({ name: 'tells__tell', arguments: {} }, CallToolResultSchema, {
    onprogress: (progress) => void told.push(JSON.stringify(progress)),
  });
  const all = JSON.stringify([told, result]);
  for (const what of ['progress', 'log', 'system', 'sampling', 'elicitation', 'form', 'result']) {
    expect(all).toContain(`${what} ${MASK}`);
  }
  expect(`${received}${JSON.stringify([ports.events, ports.health])}`).not.toContain(SECRET);
});

const callTell = () => client.callTool({ name: 'tells__tell', arguments: {} });

test('a server whose value has ended is started again with the next one, which is masked too', async () => {
  ports.endsAt = ports.clock.now() + 300_000;
  expect(JSON.stringify(await callTell())).toContain(`result ${MASK}`);
  const next = `${SECRET}-and-the-next`;
  ports.secrets = { SECRET: next };
  ports.endsAt = null;
  expect(JSON.stringify(await callTell())).toContain(`result ${MASK} m accept`);
  ports.aheadMs = 300_000;
  expect(JSON.stringify(await callTell())).toContain(`result ${'*'.repeat(next.length)} m accept`);
  const types = ports.events.map(({ type }) => type).filter((type) => type.startsWith('mcp.server.'));
  expect(types).toEqual(['mcp.server.started', 'mcp.server.stopped', 'mcp.server.started']);
  expect(`${received}${JSON.stringify([ports.events, ports.health])}`).not.toContain(SECRET);
});
