import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as SessionClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as SessionTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../../../machine/connection/listen.ts';
import type { Caller } from '../../../machine/mcp_caller.ts';
import { Gateway } from '../../../gateway/gateway.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../../../gateway/gateway_limits.ts';
import type { GatewayPorts } from '../../../gateway/gateway_ports.ts';
import { createHttpFront, type HttpFront } from '../../../gateway/fronts/http_front.ts';
import type { SourceCall, ToolSource } from '../../../gateway/tool_source.ts';

const PROGRAM = join(import.meta.dirname, 'svc_mcp.ts');
const CALLER: Caller = { sessionId: 'ses_1', servers: [] };
const TOOL = { name: 'own__echo', inputSchema: { type: 'object' as const } };

/** A source with one tool that returns its arguments; with `wait` it answers when cancelled. */
class EchoSource implements ToolSource {
  readonly prefix = 'own__';
  readonly calls: SourceCall[] = [];
  changed: () => void = () => undefined;
  progressHeard: Promise<unknown> = Promise.resolve();

  tools = () => Promise.resolve([TOOL]);

  async call(call: SourceCall) {
    this.calls.push(call);
    call.progress({ progress: 1, message: 'on it' });
    // A client does not receive earlier messages after its answer.
    await this.progressHeard;
    if (call.args['wait'] === true) await once(call.signal, 'abort');
    return { content: [{ type: 'text' as const, text: JSON.stringify(call.args) }] };
  }

  watch(onChange: () => void) {
    this.changed = onChange;
    return () => undefined;
  }
}

let source: EchoSource;
let gateway: Gateway;
let front: HttpFront;
let server: Server;
let env: Record<string, string>;

beforeEach(async () => {
  source = new EchoSource();
  gateway = new Gateway({
    ports: noServers(),
    launcher: { launch: () => Promise.reject(new Error('nothing is launched')) },
    keptLists: {
      read: () => null,
      write: () => Promise.resolve(),
      readInstructions: () => null,
      writeInstructions: () => Promise.resolve(),
    },
    revisions: { isLegacy: () => false, keepLegacy: () => Promise.resolve() },
    sources: [source],
    limits: DEFAULT_GATEWAY_LIMITS,
    version: '4.0.0',
    pause: () => Promise.resolve(),
  });
  gateway.start();
  front = createHttpFront({ gateway, now: () => Date.now() });
  const handler = toNodeHandler({ fetch: (request) => front.fetch(request, CALLER) });
  server = createServer(
    (request, response) =>
      void handler(Object.assign(request, { method: request.method ?? '', url: request.url ?? '' }), response),
  );
  const port = await listen(server, 0, '127.0.0.1');
  env = {
    SVC_URL: `http://127.0.0.1:${port}`,
    SVC_TOKEN: 'svc_session_t',
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: 'http://127.0.0.1:9',
  };
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await front.close();
  await gateway.stop();
});

function noServers(): GatewayPorts {
  return {
    watchServers: async (onChange, signal) => {
      onChange([]);
      await once(signal, 'abort');
    },
    release: () => Promise.reject(new Error('nothing is released')),
    approve: () => Promise.reject(new Error('nothing is approved')),
    reportTools: () => Promise.reject(new Error('nothing is listed')),
    record: () => undefined,
    isAccepting: () => true,
    hasEnded: () => Promise.resolve(false),
    reportHealth: () => undefined,
    clock: { now: () => Date.now() },
  };
}

describe('a client of svc-mcp', () => {
  it('without sessions lists, calls, gets progress and changes, and cancels', async () => {
    const client = new Client({ name: 't', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [PROGRAM], env }));
    expect(client.getProtocolEra()).toBe('modern');
    expect((await client.listTools()).tools).toMatchObject([{ name: 'own__echo' }]);
    const told: unknown[] = [];
    const heard = Promise.withResolvers<undefined>();
    source.progressHeard = heard.promise;
    const onprogress = (progress: unknown): void => {
      told.push(progress);
      heard.resolve(undefined);
    };
    const called = await client.callTool({ name: 'own__echo', arguments: { a: 'ä' } }, { onprogress });
    expect(called).toMatchObject({ content: [{ text: '{"a":"ä"}' }] });
    expect(told).toMatchObject([{ progress: 1, message: 'on it' }]);
    expect(source.calls[0]?.caller).toEqual(CALLER);
    const leaving = new AbortController();
    const waiting = client.callTool({ name: 'own__echo', arguments: { wait: true } }, { signal: leaving.signal });
    await expect.poll(() => source.calls).toHaveLength(2);
    leaving.abort();
    await expect(waiting).rejects.toThrow('abort');
    await expect.poll(() => source.calls[1]?.signal.aborted).toBe(true);
    await client.close();
  });

  it('with a session does the same', async () => {
    const client = new SessionClient({ name: 't', version: '1' });
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (changes += 1));
    await client.connect(new SessionTransport({ command: process.execPath, args: [PROGRAM], env }));
    expect((await client.listTools()).tools).toMatchObject([{ name: 'own__echo' }]);
    const told: unknown[] = [];
    const heard = Promise.withResolvers<undefined>();
    source.progressHeard = heard.promise;
    const onprogress = (progress: unknown): void => {
      told.push(progress);
      heard.resolve(undefined);
    };
    const called = await client.callTool({ name: 'own__echo', arguments: { a: 1 } }, undefined, { onprogress });
    expect(called).toMatchObject({ content: [{ text: '{"a":1}' }] });
    expect(told).toMatchObject([{ progress: 1 }]);
    // The server's stream opens after the initialisation; earlier messages are lost.
    await expect
      .poll(() => {
        source.changed();
        return changes;
      })
      .toBeGreaterThan(0);
    const leaving = new AbortController();
    const call = { name: 'own__echo', arguments: { wait: true } };
    const waiting = client.callTool(call, undefined, { signal: leaving.signal });
    await expect.poll(() => source.calls).toHaveLength(2);
    leaving.abort();
    await expect(waiting).rejects.toThrow('abort');
    await expect.poll(() => source.calls[1]?.signal.aborted).toBe(true);
    await client.close();
  });

  it('may close its input after its last request, which is still answered', async () => {
    const child = spawn(process.execPath, [PROGRAM], { env });
    const greeting = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    child.stdin.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: greeting }));
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(JSON.parse(text)).toMatchObject({ id: 1, result: { protocolVersion: '2025-06-18' } });
  });

  it.each([
    [{ SVC_URL: '' }, 'SVC_URL and SVC_TOKEN are not set'],
    [{ SVC_TOKEN: '' }, 'SVC_URL and SVC_TOKEN are not set'],
    [{ SVC_URL: 'https://127.0.0.1' }, 'SVC_URL is not an http URL'],
  ])('is told immediately what is missing: %j', async (change, said) => {
    const child = spawn(process.execPath, [PROGRAM], { env: { ...env, ...change } });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(text).toContain(said);
    expect(text).not.toContain('svc_session_t');
  });
});
