import { createServer } from 'node:http';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { ok } from '../../shared/model/result.ts';
import { Connection } from '../../machine/connection/connection.ts';
import { createSocketGate } from '../../machine/connection/socket_gate.ts';
import type { Log } from '../../machine/ports.ts';
import { BodyBudget } from '../exchange/body.ts';
import { MaskedReplies } from '../exchange/masked_replies.ts';
import { RequestCounts } from '../exchange/request_counts.ts';
import { MaterialCache } from '../exchange/material.ts';
import { NodeSha256 } from '../exchange/node_sha256.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import {
  FakeApprovalSource,
  FakeAuditSink,
  FakeClock,
  FakeCredentialSource,
  FakeMetrics,
  FakePolicySource,
} from '../testing/fakes.ts';
import { ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { createListener } from './listener.ts';
import type { ServedTunnel } from './serve.ts';
import { serve } from './serve.ts';
import { SessionRefusals } from './session_refusals.ts';
import { StrangerRefusals } from './stranger_refusals.ts';
import type { TunnelPorts } from './tunnel_ports.ts';

const HOST = 'api.example.test';
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';

let audit: FakeAuditSink;
let policy: FakePolicySource;
let credentials: FakeCredentialSource;
let upstreams: ScriptedStream[];
let errors: string[];
let ports: TunnelPorts;

beforeEach(() => {
  audit = new FakeAuditSink();
  policy = new FakePolicySource();
  credentials = new FakeCredentialSource();
  credentials.set({ owner: 'personal', path: 'user/demo' }, 'planted-secret-0123456789');
  upstreams = [];
  errors = [];
  const metrics = new FakeMetrics();
  const log: Log = { info: () => undefined, error: (message) => errors.push(message) };
  ports = {
    sessions: { authenticate: () => null },
    gate: createSocketGate({ limits: DEFAULT_LIMITS, maxOpen: null, metrics, log, clock: new FakeClock() }),
    exchange: {
      policy,
      credentials,
      approvals: new FakeApprovalSource(),
      audit,
      clock: new FakeClock(),
      limits: DEFAULT_LIMITS,
      budget: new BodyBudget(1000),
      materials: new MaterialCache(),
      masked: new MaskedReplies(1000, () => true),
      counts: new RequestCounts({ clock: new FakeClock() }),
      hash: NodeSha256,
    },
    audit,
    strangers: new StrangerRefusals(audit),
    refusals: new SessionRefusals(audit),
    metrics,
    log,
    openUpstream: () => Promise.resolve({ isDialled: false, protocol: 'http/1.1', lanes: lanes() }),
    dialTcp: () => ({ connected: Promise.reject(new Error('nothing is tunnelled')), cancel: () => undefined }),
    openLanes: () => lanes(),
    openPlainLanes: () => lanes(),
  };
});

afterEach(() => void vi.useRealTimers());

/** Lanes that open every connection to a new upstream of the test. */
function lanes(): ServedTunnel['lanes'] {
  const own: ScriptedStream[] = [];
  const dial = (): ReturnType<ServedTunnel['lanes']['dial']> => {
    const upstream = new ScriptedStream();
    own.push(upstream);
    upstreams.push(upstream);
    return Promise.resolve(ok({ connection: new Connection(upstream), reused: false }));
  };
  return {
    dial,
    take: dial,
    give: (_lane, connection) => connection.destroy(),
    keepToTunnel: () => undefined,
    onWebSockets: () => undefined,
    close: () => own.forEach((upstream) => upstream.destroy()),
  };
}

function serving(client: ScriptedStream): Promise<boolean> {
  const tunnel = { sessionId: 'ses_test', host: HOST, sni: HOST, lanes: lanes() };
  return serve(new Connection(client), tunnel, ports);
}

test('stops reading requests of a client that does not read its refusals', async () => {
  policy.refuse('snapshot_expired');
  const client = new ScriptedStream({ reading: false });
  client.sendForEver(Buffer.from(GET.repeat(100)));
  void serving(client);
  await turns();
  const answered = audit.events.length;
  expect(answered).toBeLessThan(2000);
  await turns();
  expect(audit.events).toHaveLength(answered);
  client.destroy();
});

test('stops reading requests of a client that does not read replies without a body', async () => {
  const client = new ScriptedStream({ reading: false });
  client.sendForEver(Buffer.from(GET.repeat(100)));
  void serving(client);
  const large = `HTTP/1.1 204 No Content\r\nX-Large: ${'x'.repeat(30_000)}\r\n\r\n`;
  for (let reply = 0; reply < 40; reply += 1) {
    await turns(10);
    if (upstreams[reply]?.readable === true) upstreams[reply]?.send(large);
  }
  expect(upstreams.length).toBeLessThan(10);
  client.destroy();
});

test('does not hold interim replies for a client that does not read', async () => {
  const client = new ScriptedStream({ reading: false });
  client.send(GET);
  void serving(client);
  await turns(5);
  const upstream = upstreams[0];
  upstream?.sendForEver(Buffer.from(`HTTP/1.1 103 Early Hints\r\nX-Large: ${'x'.repeat(30_000)}\r\n\r\n`));
  await turns();
  expect(upstream?.sentBytes).toBeLessThan(1024 * 1024);
  client.destroy();
});

test('reads no more of an endless reply than its client reads', async () => {
  const client = new ScriptedStream({ reading: false });
  client.send(GET);
  void serving(client);
  await turns(5);
  const upstream = upstreams[0];
  upstream?.send('HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n');
  upstream?.sendForEver(Buffer.alloc(64 * 1024));
  await turns();
  const sent = upstream?.sentBytes ?? 0;
  expect(sent).toBeLessThan(1024 * 1024);
  client.startReading();
  await turns();
  expect(upstream?.sentBytes).toBeGreaterThan(sent + 1024 * 1024);
  client.destroy();
});

test('drops the buffered requests of a client that disconnected', async () => {
  policy.refuse('snapshot_expired');
  const client = new ScriptedStream({ reading: false });
  client.sendForEver(Buffer.from(GET.repeat(100)));
  const over = serving(client);
  await turns();
  const answered = audit.events.length;
  client.destroy();
  await over;
  expect(audit.events).toHaveLength(answered);
});

test("passes a client's half-close on only after its whole body", async () => {
  const client = new ScriptedStream();
  const body = 'x'.repeat(300_000);
  client.send(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${body.length}\r\n\r\n`);
  const over = serving(client);
  for (let at = 0; at < body.length; at += 10_000) client.send(body.slice(at, at + 10_000));
  client.send(null);
  await turns();
  const upstream = upstreams[0];
  expect(upstream?.text.endsWith(body)).toBe(true);
  expect(upstream?.writableFinished).toBe(true);
  upstream?.send(NO_CONTENT);
  await over;
  expect(client.text).toBe(NO_CONTENT);
});

test('delivers everything it wrote before it closes a connection, however slowly the client reads', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const client = new ScriptedStream({ reading: false });
  client.send(GET);
  const over = serving(client);
  await turns(5);
  const reply = `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n${'x'.repeat(5000)}`;
  upstreams[0]?.send(reply);
  await turns();
  vi.advanceTimersByTime(600_000);
  await turns();
  expect(client.destroyed).toBe(false);
  client.startReading();
  await turns();
  expect([client.text, client.destroyed]).toEqual([reply, false]);
  vi.advanceTimersByTime(600_000);
  await over;
  expect(client.destroyed).toBe(true);
});

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])(
  'never ends a reply in %s before its body, and survives bytes after the end of its data',
  async (coding, compress) => {
    policy.use([bearerBinding(HOST)]);
    const client = new ScriptedStream();
    client.send(GET);
    void serving(client);
    await turns(5);
    const data = compress('small\n');
    const rest = 'x'.repeat(40);
    const length = data.length + 2 * rest.length;
    upstreams[0]?.send(
      `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: ${coding}\r\nContent-Length: ${length}\r\n\r\n`,
    );
    upstreams[0]?.send(data);
    await vi.waitFor(() => expect(client.text).toContain('small'), { timeout: 60_000 });
    upstreams[0]?.send(rest);
    await turns(50);
    expect(client.text).not.toMatch(/0\r\n\r\n$/);
    upstreams[0]?.send(rest);
    await vi.waitFor(() => expect(client.destroyed || client.text.endsWith('\r\n0\r\n\r\n')).toBe(true), {
      timeout: 20_000,
    });
  },
);

test('closes a tunnel without requests, but never during a request', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const idle = new ScriptedStream();
  const busy = new ScriptedStream();
  busy.send(GET);
  const over = Promise.all([serving(idle), serving(busy)]);
  await turns(5);
  vi.advanceTimersByTime(DEFAULT_LIMITS.idleTunnelSeconds * 1000);
  await turns(5);
  expect([idle.destroyed, busy.destroyed]).toEqual([true, false]);
  upstreams[0]?.send(NO_CONTENT);
  await turns(5);
  vi.advanceTimersByTime(DEFAULT_LIMITS.idleTunnelSeconds * 1000);
  await over;
  expect(busy.text).toBe(NO_CONTENT);
});

test('leaves no timer behind, also if the client disconnects in the middle of a reply', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const client = new ScriptedStream();
  client.send(GET + GET);
  const over = serving(client);
  await turns(5);
  upstreams[0]?.send(NO_CONTENT);
  await turns(5);
  client.destroy();
  await over;
  expect(vi.getTimerCount()).toBe(0);
});

test('stops reading CONNECTs of a client that does not read its 407 replies', async () => {
  const listener = createListener(ports, createServer());
  const client = new ScriptedStream({ reading: false });
  listener.emit('connection', client);
  client.sendForEver(Buffer.from('CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n'.repeat(100)));
  await turns();
  const answered = audit.events.length;
  expect(answered).toBeGreaterThan(0);
  await turns();
  expect(audit.events).toHaveLength(answered);
  client.destroy();
});

test('a connection that cannot be accepted does not stop the listener', async () => {
  const listener = createListener(ports, createServer());
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  listener.emit('error', new Error('accept failed'));
  expect(errors).toHaveLength(1);
  await new Promise((resolve) => listener.close(resolve));
});
