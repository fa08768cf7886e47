import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, type DataPlane, readUntil, startDataPlane } from '../testing/data_plane.ts';

// Connections without an authenticated request cannot keep others from being served (docs/decisions/0048).

const HOST = 'bound.example.test';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const LIMITS = { maxWaitingConnections: 16, maxWaitingPerPeer: 8 };

let plane: DataPlane;
let crowd: Socket[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of crowd) socket.destroy();
  crowd = [];
  await plane.stop();
});

async function start(...input: Parameters<typeof startDataPlane>): Promise<void> {
  plane = await startDataPlane(...input);
  plane.policy.use([bearerBinding(HOST)]);
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, 'planted-secret-0123456789');
  await plane.upstream(
    HOST,
    createAnswering(() => OK),
  );
}

/** Connections that send this text and nothing more; each promise resolves when one ends. */
async function crowdOf(count: number, text: string): Promise<{ readonly gone: Promise<void>[] }> {
  const gone: Promise<void>[] = [];
  for (let number = 0; number < count; number += 1) {
    const socket = connect(plane.port, '127.0.0.1');
    crowd.push(socket);
    gone.push(new Promise((resolve) => socket.on('error', () => undefined).on('close', () => resolve())));
    await once(socket, 'connect');
    socket.on('data', () => undefined).write(text);
  }
  return { gone };
}

const request = async () => {
  const tunnel = await plane.open(HOST);
  tunnel.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  return { tunnel, reply: await readUntil(tunnel, (got) => got.endsWith('ok')) };
};
const countDropped = (reason: string) =>
  plane.metrics.counts.get(`svc_connections_dropped_total{reason="${reason}"}`) ?? 0;

test.each([
  ['one byte', 'G'],
  ['a partial head', `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: bound`],
  ['a request without credentials', `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`],
  ['a partial request to the local API', 'POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1'],
])('of connections that sent %s the oldest makes room for the next, and a session is served', async (_, text) => {
  await start(LIMITS);
  const { gone } = await crowdOf(100, text);
  expect((await request()).reply).toContain('200 OK');
  await Promise.all(gone.slice(0, 92));
  expect(countDropped('waiting_of_peer')).toBeGreaterThanOrEqual(92);
  expect((await request()).reply).toContain('200 OK');
});

test('a tunnel that serves stays, no matter how many connections follow', async () => {
  await start(LIMITS, 12);
  const { tunnel } = await request();
  await crowdOf(100, 'G');
  tunnel.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  expect(await readUntil(tunnel, (got) => got.endsWith('ok'))).toContain('200 OK');
});

test('tunnels without a request make room when descriptors run short', async () => {
  await start(LIMITS, 4);
  const oldest = await plane.open(HOST);
  // Only a socket that is being read notices its end.
  const gone = new Promise((resolve) => oldest.on('error', resolve).on('close', resolve).resume());
  for (const _ of [2, 3, 4]) await plane.open(HOST);
  expect((await request()).reply).toContain('200 OK');
  await gone;
  expect(countDropped('descriptors')).toBe(1);
});

test('a first head has a shorter deadline than a tunnel', async () => {
  await start();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { gone } = await crowdOf(1, 'G');
  await vi.waitFor(() => expect(plane.gate.counts.waiting).toBe(1), { timeout: 60_000 });
  vi.advanceTimersByTime(9_999);
  expect(plane.gate.counts.waiting).toBe(1);
  vi.advanceTimersByTime(1);
  await Promise.all(gone);
});

test('a first head is small, and a larger one is answered', async () => {
  await start({ maxFirstHeadBytes: 1024 });
  expect(await plane.raw(`CONNECT ${HOST}:443 HTTP/1.1\r\nX: ${'x'.repeat(2000)}`)).toMatch(/^HTTP\/1\.1 431 /);
});

test('many drops are logged once', async () => {
  await start(LIMITS);
  const { gone } = await crowdOf(50, 'G');
  await Promise.all(gone.slice(0, 42));
  expect(plane.errors.filter((line) => line.includes('too many connections'))).toHaveLength(1);
});
