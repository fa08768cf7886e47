import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { getRequestListener } from '@hono/node-server';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { localServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { createLocalApi } from '../../sidecar/local_api/app.ts';
import { HOST_TOKEN, LocalApiBench } from '../../sidecar/testing/local_api_bench.ts';
import { type McpBench, mcpOptions } from '../../sidecar/testing/mcp_options.ts';
import { type LocalApiAddress, LocalApi } from './local_api.ts';
import { SidecarPorts, type ServerDetail } from './sidecar_ports.ts';
import type { GatewayServer, ToolApproval } from '../gateway_ports.ts';
import { consentOf } from '../../sidecar/mcp/server_directory.ts';

let bench: LocalApiBench;
let mcp: McpBench;
let sidecar: Server;
let address: LocalApiAddress | null;
let details: Map<string, ServerDetail>;
let ports: SidecarPorts;
let home: string;
const stop: AbortController[] = [];

const TOKEN_PATH = `mcp-servers/${SERVER_ID}/TOKEN`;
const server = localServer({ env: { TOKEN: `vault://${TOKEN_PATH}` } });
const hash = consentOf(server)?.hash ?? '';

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-sidecar-ports-'));
  bench = await LocalApiBench.start();
  mcp = mcpOptions({ home, clock: bench.clock });
  mcp.use([{ server, authorization: null }]);
  await startSidecar();
  details = new Map();
  ports = new SidecarPorts({
    localApi: new LocalApi(() => address),
    identity: { id: 'gateway-0123456789', kind: 'stdio', pid: 1 },
    clock: bench.clock,
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    warn: () => undefined,
    detailOf: (id) => details.get(id) ?? null,
  });
});

afterEach(async () => {
  for (const one of stop.splice(0)) one.abort();
  stopSidecar();
  await bench.stop();
  rmSync(home, { recursive: true, force: true });
});

/** A sidecar on another port than the previous one. */
async function startSidecar(): Promise<void> {
  const answer = getRequestListener(createLocalApi({ ...bench.options, mcp }).fetch);
  sidecar = createServer((request, response) => void answer(request, response));
  sidecar.listen(0, '127.0.0.1');
  await once(sidecar, 'listening');
  const found = sidecar.address();
  const port = typeof found === 'object' && found !== null ? found.port : 0;
  address = { origin: new URL(`http://127.0.0.1:${port}`), hostToken: HOST_TOKEN };
}

function stopSidecar(): void {
  sidecar.close();
  sidecar.closeAllConnections();
  address = null;
}

/** The lists that a gateway receives; the test waits for each. */
function watchServers(): {
  next(): Promise<readonly GatewayServer[]>;
  /** The lists that came and were not waited for yet. */
  waiting(): readonly (readonly GatewayServer[])[];
} {
  const lists: (readonly GatewayServer[])[] = [];
  let wake: (() => void) | null = null;
  const ended = new AbortController();
  stop.push(ended);
  void ports.watchServers((list) => {
    lists.push(list);
    wake?.();
  }, ended.signal);
  return {
    async next() {
      while (lists.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return lists.shift() ?? [];
    },
    waiting: () => lists,
  };
}

const consent = (of: McpServer) => {
  const { hash: wanted = '', text = '' } = consentOf(of) ?? {};
  return mcp.consents.give({ server_id: of.id, name: of.name, hash: wanted, text });
};
const store = () => mcp.credentials.set({ owner: 'personal', path: TOKEN_PATH }, 'the-value');

async function until(look: () => boolean): Promise<void> {
  while (!look()) await new Promise((resolve) => setImmediate(resolve));
}

const call = (more: Partial<ToolApproval> = {}): ToolApproval => ({
  server,
  tool: 'delete_file',
  argumentsHash: 'a'.repeat(64),
  summary: 'demo: delete_file (path)',
  shownArguments: null,
  sessionId: null,
  signal: new AbortController().signal,
  ...more,
});

const shownState = () => {
  const [known] = mcp.directory.listAll() ?? [];
  return known === undefined ? null : mcp.board.stateOf({ ...known, consent: 'given', missing: [] });
};

describe('the list of servers', () => {
  test('is reported at once and after each change', async () => {
    const list = watchServers();
    expect(await list.next()).toMatchObject([{ server, consent: 'needed', missing: [TOKEN_PATH] }]);
    await consent(server);
    expect(await list.next()).toMatchObject([{ consent: 'given' }]);
    mcp.use([]);
    expect(await list.next()).toEqual([]);
  });

  test('is not repeated by a restarted sidecar unless it changed', async () => {
    const list = watchServers();
    await list.next();
    stopSidecar();
    await startSidecar();
    mcp.use([]);
    expect(await list.next()).toEqual([]);
  });
});

describe('tools that were reported', () => {
  const tools = [{ name: 'read', description: 'Reads.' }];

  test('say their kind if they are prompts', async () => {
    mcp.reviewed = new Map();
    const list = watchServers();
    expect(await list.next()).toMatchObject([{ reviewedKinds: ['tool', 'prompt', 'instructions'] }]);
    await ports.reportTools(server, 'prompt', tools);
    await ports.reportTools(server, 'tool', tools);
    expect(mcp.reports).toEqual([
      { server_id: SERVER_ID, kind: 'prompt', tools },
      { server_id: SERVER_ID, tools },
    ]);
  });

  test('are in the list with their outcome once the report is answered', async () => {
    mcp.reviewed = new Map();
    const list = watchServers();
    expect(await list.next()).toMatchObject([{ reviewed: [] }]);
    // Nothing tells the request that waits for a change: only a new one shows it.
    mcp.reviewed = new Map([[SERVER_ID, ['a'.repeat(64)]]]);
    expect(await ports.reportTools(server, 'tool', tools)).toEqual({ ok: true, value: null });
    expect(list.waiting()).toMatchObject([[{ reviewed: ['a'.repeat(64)] }]]);
  });

  test('each wait for a list of their own if they are reported at the same time', async () => {
    mcp.reviewed = new Map();
    const list = watchServers();
    await list.next();
    mcp.reviewed = new Map([[SERVER_ID, ['b'.repeat(64)]]]);
    await Promise.all([1, 2, 3].map(() => ports.reportTools(server, 'tool', tools)));
    expect(list.waiting()).toMatchObject([[{ reviewed: ['b'.repeat(64)] }]]);
  });

  test('wait for no list after the end, nor while the sidecar is away', async () => {
    await expect(ports.reportTools(server, 'tool', tools)).resolves.toMatchObject({ ok: true });
    await watchServers().next();
    stopSidecar();
    await expect(ports.reportTools(server, 'tool', tools)).resolves.toMatchObject({ ok: false });
    await startSidecar();
    for (const one of stop.splice(0)) one.abort();
    await expect(ports.reportTools(server, 'tool', tools)).resolves.toMatchObject({ ok: true });
  });
});

describe('values', () => {
  test('are returned as secrets, by path', async () => {
    store();
    await consent(server);
    const released = await ports.release(server, hash);
    expect(released.ok && released.value.values.get(TOKEN_PATH)?.reveal()).toBe('the-value');
    expect(JSON.stringify(released)).not.toContain('the-value');
  });

  test.each([
    ['consent_needed', async () => store()],
    ['credential_missing', async () => consent(server)],
    [
      'credential_unavailable',
      async () => (await consent(server), store(), mcp.credentials.refuse('credential_unavailable')),
    ],
    [
      'control_plane_unavailable',
      async () => (await consent(server), store(), mcp.credentials.refuse('snapshot_expired')),
    ],
    ['control_plane_unavailable', async () => stopSidecar()],
  ])('that are unavailable say why: %s', async (reason, prepare) => {
    await prepare();
    expect(await ports.release(server, hash)).toMatchObject({ ok: false, error: { reason } });
  });
});

describe('an approval', () => {
  test('is given or refused with a reason', async () => {
    expect(await ports.approve(call())).toEqual(ok(null));
    const denied = { refusal: refusal('approval_denied', 'denied'), approvalId: 'apr_2' };
    mcp.onApproval = () => Promise.resolve(err(denied));
    expect(await ports.approve(call())).toMatchObject({ error: { reason: 'approval_denied' } });
    stopSidecar();
    expect(await ports.approve(call())).toMatchObject({ error: { reason: 'control_plane_unavailable' } });
  });

  test('shortens a long tool name at a character boundary: half a character could not be recorded', async () => {
    await ports.approve(call({ tool: `${'a'.repeat(999)}\u{1f642}b` }));
    expect(mcp.asked[0]?.tool.isWellFormed()).toBe(true);
  });

  test('distinguishes tools whose names differ in hidden characters', async () => {
    await ports.approve(call({ tool: 'a\u0001' }));
    await ports.approve(call({ tool: 'a\u0002' }));
    const [one, other] = mcp.asked;
    expect([one?.tool, other?.tool]).toEqual(['a<U+0001>', 'a<U+0002>']);
    expect(one?.argumentsHash).not.toBe(other?.argumentsHash);
  });
});

test("events are in the sidecar's log, with control characters escaped", async () => {
  ports.record({ type: 'mcp.server.started', server });
  const called = { outcome: 'tool_error' as const, durationMs: 3.7, sessionId: null };
  ports.record({ type: 'mcp.tool.called', server, tool: 'a\u001b[2J', ...called });
  await ports.close(1_000);
  expect(bench.sink.events.map(({ type }) => type)).toEqual(['mcp.server.started', 'mcp.tool.called']);
  expect(bench.sink.events[1]?.data).toMatchObject({ 'svc.mcp.tool': 'a<U+001B>[2J', 'svc.mcp.duration_ms': 4 });
  expect(bench.sink.events[0]?.data).not.toHaveProperty(['svc.mcp.unchecked']);
});

test('a session has ended once the sidecar says so, and not while the sidecar is away', async () => {
  const { id } = await bench.createSession();
  const hasEnded = () => ports.hasEnded(id, new AbortController().signal);
  expect(await hasEnded()).toBe(false);
  await bench.sessions.end(id);
  expect(await hasEnded()).toBe(true);
  stopSidecar();
  expect(await hasEnded()).toBe(false);
});

test('events say if a server runs unchecked code', async () => {
  ports.record({ type: 'mcp.server.started', server: { ...server, command: ['erl', '-eval', 'x'] } });
  await ports.close(1_000);
  expect(bench.sink.events[0]?.data).toMatchObject({ 'svc.mcp.unchecked': true });
});

const hasLog = (id: string) => mcp.board.logsOf(id).length > 0;

describe('the state of the servers', () => {
  const running = [{ id: SERVER_ID, state: 'running' as const, lastError: null, checkedAt: 0 }];

  test("is reported with the server's output, and again if there is more", async () => {
    details.set(SERVER_ID, { restarts: 1, tools: 3, stderr: 'one\n' });
    ports.reportHealth(running);
    await until(() => shownState()?.state === 'running');
    expect(shownState()).toMatchObject({ restarts: 1, tools: 3 });
    details.set(SERVER_ID, { restarts: 1, tools: 4, stderr: 'one\ntwo\n' });
    ports.refreshDetails();
    await until(() => shownState()?.tools === 4);
    expect(mcp.board.logsOf(SERVER_ID)[0]?.lines).toEqual(['one', 'two']);
  });

  test('is reported for many servers with much output in several reports', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `mcp_0${String(index).padStart(25, '0')}`);
    const stderr = `${'\u{fffd}'.repeat(1_000)}\n`.repeat(60);
    for (const id of ids) details.set(id, { restarts: 0, tools: 1, stderr });
    ports.reportHealth([...running, ...ids.map((id) => ({ ...running[0]!, id }))]);
    await until(() => shownState()?.state === 'running');
    expect(ids.every(hasLog)).toBe(false);
    const expectLogs = () => {
      ports.refreshDetails();
      expect(ids.every(hasLog)).toBe(true);
    };
    await vi.waitFor(expectLogs, { interval: 10, timeout: 60_000 });
  }, 40_000);

  test('is reported to a restarted sidecar, and ends with the gateway', async () => {
    const list = watchServers();
    await list.next();
    ports.reportHealth(running);
    await until(() => shownState()?.state === 'running');
    stopSidecar();
    mcp.board.end('gateway-0123456789');
    await startSidecar();
    await until(() => shownState()?.state === 'running');
    await ports.close(1_000);
    expect(shownState()?.state).toBe('stopped');
  });
});
