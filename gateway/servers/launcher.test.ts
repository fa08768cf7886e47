import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mcpReference } from '../../shared/mcp/references.ts';
import { localServer, remoteServer } from '../../shared/mcp/testing/servers.ts';
import { type McpServer, mcpVaultPath } from '../../shared/model/mcp_server.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { DownstreamEvents } from '../fronts/downstream.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import { Launcher } from './launcher.ts';
import type { LocalLaunch } from './local_launch.ts';
import { ServerProcess } from './server_process.ts';
import { StderrRing } from './stderr_ring.ts';

const TOKENS = ['the-first-access-token', 'the-second-access-token'];
const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {}, logging: {} },
  serverInfo: { name: 'echo', version: '1' },
};
const message = z.object({ id: z.union([z.number(), z.string()]).optional(), method: z.string() });

let remote: Server;
let url: string;
let now: number;
/** Whether the server leaves the question for its revision without an answer. */
let isSilent: boolean;

/** A server of the earlier generation that logs and returns the token that it was called with. */
beforeEach(async () => {
  now = 0;
  isSilent = false;
  remote = createServer((request, response) => {
    void text(request).then((body) => {
      const { id, method } = body === '' ? { id: undefined, method: '' } : message.parse(JSON.parse(body));
      if (id === undefined) return response.writeHead(request.method === 'GET' ? 405 : 202).end();
      if (isSilent && method === 'server/discover') return undefined;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const say = (one: object) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...one })}\n\n`);
      const data = request.headers.authorization;
      if (method === 'initialize') say({ id, result: INITIALIZED });
      else if (method !== 'tools/call') say({ id, error: { code: -32_601, message: 'Method not found' } });
      else {
        say({ method: 'notifications/message', params: { level: 'info', data } });
        say({ id, result: { content: [{ type: 'text', text: data }] } });
      }
      return response.end();
    });
  });
  remote.listen(0, '127.0.0.1');
  await once(remote, 'listening');
  const address = remote.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/mcp`;
});
afterEach(() => {
  remote.closeAllConnections();
  remote.close();
});

test("masks an access token that was renewed while the server runs in the server's own messages", async () => {
  const tokens = [...TOKENS];
  const launcher = new Launcher({
    ports: {
      clock: { now: () => now },
      release: () => {
        const bearer = { token: new Secret(tokens.shift() ?? ''), expiresAt: now + 60_000 };
        return Promise.resolve(ok({ values: new Map(), endsAt: null, bearer }));
      },
    },
    local: z.custom<LocalLaunch>().parse({}),
    limits: DEFAULT_GATEWAY_LIMITS,
    version: '0',
    isLocal: true,
    extraRoots: [],
  });
  const logged: unknown[] = [];
  const events = z.custom<DownstreamEvents>().parse({ log: ({ data }: { data: unknown }) => void logged.push(data) });
  const launched = await launcher.launch({
    server: remoteServer({ url }),
    events,
    stderr: new StderrRing(),
    isLegacy: true,
    signal: new AbortController().signal,
  });
  if (!launched.ok) throw new Error(launched.error.message);
  now += 40_000;
  const { client, mask } = launched.value;
  const result = await client.callTool({ name: 't', arguments: {} });
  expect(JSON.stringify(result)).toContain(TOKENS[1]);
  expect(JSON.stringify(launched.value.mask.maskValue(result))).not.toContain(TOKENS[1]);
  expect(launched.value.mask).not.toBe(mask);
  // The old token is valid for another 20 seconds.
  expect(launched.value.mask.maskText(TOKENS[0]!)).toBe('*'.repeat(TOKENS[0]!.length));
  expect(logged).toEqual([`Bearer ${'*'.repeat(TOKENS[1]!.length)}`]);
  await launched.value.close();
});

test('sends nothing with a value that has ended', async () => {
  const { id } = remoteServer();
  const path = mcpVaultPath(id, 'TOKEN');
  const launcher = new Launcher({
    ports: {
      clock: { now: () => now },
      release: () => {
        const values = new Map([[path, new Secret(TOKENS[0]!)]]);
        return Promise.resolve(ok({ values, endsAt: now + 60_000, bearer: null }));
      },
    },
    local: z.custom<LocalLaunch>().parse({}),
    limits: DEFAULT_GATEWAY_LIMITS,
    version: '0',
    isLocal: true,
    extraRoots: [],
  });
  const launched = await launcher.launch({
    server: remoteServer({ url, headers: { Authorization: `Bearer ${mcpReference(id, 'TOKEN')}` } }),
    events: z.custom<DownstreamEvents>().parse({ log: () => undefined }),
    stderr: new StderrRing(),
    isLegacy: true,
    signal: new AbortController().signal,
  });
  if (!launched.ok) throw new Error(launched.error.message);
  const { client, ends } = launched.value;
  const call = () => client.callTool({ name: 't', arguments: {} });
  expect(JSON.stringify(await call())).toContain(TOKENS[0]);
  let asked = 0;
  remote.on('request', () => (asked += 1));
  now += 60_000;
  expect(ends.hasEnded).toBe(true);
  await expect(call()).rejects.toThrow('a credential of it has ended');
  expect(asked).toBe(0);
  await launched.value.close();
});

test.each([true, false])(
  'whether the earlier revision is only assumed is known of a server: silent %s',
  async (silent) => {
    isSilent = silent;
    const launcher = new Launcher({
      ports: {
        clock: { now: () => now },
        release: () => Promise.resolve(ok({ values: new Map(), endsAt: null, bearer: null })),
      },
      local: z.custom<LocalLaunch>().parse({}),
      // A server that answers has much time, and a silent one is not waited for.
      limits: { ...DEFAULT_GATEWAY_LIMITS, remoteProbeMs: silent ? 50 : 60_000 },
      version: '0',
      isLocal: true,
      extraRoots: [],
    });
    const launched = await launcher.launch({
      server: remoteServer({ url }),
      events: z.custom<DownstreamEvents>().parse({ log: () => undefined }),
      stderr: new StderrRing(),
      isLegacy: false,
      signal: new AbortController().signal,
    });
    if (!launched.ok) throw new Error(launched.error.message);
    expect([launched.value.client.getProtocolEra(), launched.value.isEraGuessed]).toEqual(['legacy', silent]);
    await launched.value.close();
  },
);

const launch = (launcher: Launcher, server: McpServer, signal: AbortSignal) =>
  launcher.launch({
    server,
    events: z.custom<DownstreamEvents>().parse({}),
    stderr: new StderrRing(),
    isLegacy: false,
    signal,
  });

describe('a start that is ended while the server leaves the question for its revision without an answer', () => {
  const NEVER_MS = 3_600_000;
  const limits = {
    ...DEFAULT_GATEWAY_LIMITS,
    probeMs: NEVER_MS,
    remoteProbeMs: NEVER_MS,
    startMs: NEVER_MS,
    stopMs: 10,
  };
  const launcherOf = (local: Partial<LocalLaunch>) =>
    new Launcher({
      ports: {
        clock: { now: () => now },
        release: () => Promise.resolve(ok({ values: new Map(), endsAt: null, bearer: null })),
      },
      local: z.custom<LocalLaunch>().parse(local),
      limits,
      version: '0',
      isLocal: true,
      extraRoots: [],
    });

  test('ends at once, with the connection to a remote server', async () => {
    isSilent = true;
    const life = new AbortController();
    const asked = once(remote, 'request');
    const starting = launch(launcherOf({}), remoteServer({ url }), life.signal);
    const [request] = z
      .tuple([z.custom<IncomingMessage>()])
      .rest(z.unknown())
      .parse(await asked);
    const gone = once(request.socket, 'close');
    life.abort();
    expect(await starting).toMatchObject({ ok: false });
    await gone;
  });

  test('ends at once, with the process of a local server', async () => {
    const life = new AbortController();
    const running = new Set<number>();
    const wrote = Promise.withResolvers<void>();
    const start = async (): ReturnType<LocalLaunch['start']> => {
      // It does not end with its input.
      const args = ['-e', 'process.stdin.once("data", () => console.error("asked")); setInterval(() => {}, 1e6)'];
      const stderr = new StderrRing();
      const watch = { add: (pid: number) => running.add(pid), remove: (pid: number) => running.delete(pid) };
      const directory = tmpdir();
      const started = await ServerProcess.start(
        { program: process.execPath, args, env: {}, directory, runId: 'run-of-a-test', watch },
        stderr,
      );
      if (started.ok) started.value.child.stderr.once('data', () => wrote.resolve());
      return started.ok ? started : err({ reason: 'spawn_failed', message: started.error });
    };
    const local = { start, findTrial: () => null, explainFailure: () => null };
    const starting = launch(launcherOf(local), localServer({}), life.signal);
    await wrote.promise;
    expect(running.size).toBe(1);
    life.abort();
    expect(await starting).toMatchObject({ ok: false });
    expect(running.size).toBe(0);
  });
});
