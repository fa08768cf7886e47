import type { ClientHttp2Session, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { startDataPlane } from '../testing/data_plane.ts';
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  fields,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  readFrames,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from '../testing/frames.ts';

/** Peers that write frames of HTTP/2 themselves. Whatever they send, the tunnels of others go on. */

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const SECRET = 'planted-secret-0123456789';
let plane: DataPlane;
let requests: number;

beforeEach(async () => {
  plane = await startDataPlane({ connectTimeoutSeconds: 2 });
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  requests = 0;
  for (const host of [HOST, OTHER]) {
    await plane.streamUpstream(host, (stream) => {
      requests += 1;
      stream.respond({ ':status': 200 });
      stream.end('hi');
    });
  }
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

const REQUEST = fields([
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', HOST],
  [':path', '/'],
]);

const START = Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]);

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** Sends bytes in a new tunnel, and waits until the proxy has ended it. */
async function sendUntilClosed(bytes: Buffer, reads = true): Promise<Buffer> {
  const socket = await plane.openTls(HOST, ['h2']);
  const got: Buffer[] = [];
  socket.on('error', () => undefined);
  if (reads) socket.on('data', (data: Buffer) => got.push(data));
  socket.write(Buffer.concat([START, bytes]));
  await expect.poll(() => plane.openTunnels(), { timeout: 10_000 }).toBe(0);
  socket.destroy();
  return Buffer.concat(got);
}

/** The error code of the GOAWAY among received frames; null if there is none. */
function goawayCode(bytes: Buffer): number | null {
  return (
    readFrames(bytes)
      .find(({ type }) => type === GOAWAY)
      ?.payload.readUInt32BE(4) ?? null
  );
}

async function expectOthersServed(): Promise<void> {
  const session = await plane.openSession(OTHER);
  expect(await statusOf(session, OTHER)).toBe('200');
  session.destroy();
}

function statusOf(session: ClientHttp2Session, host: string): Promise<string> {
  const stream = session.request([':method', 'GET', ':scheme', 'https', ':authority', host, ':path', '/']);
  return new Promise((resolve) => {
    let status = '';
    stream.on('response', (_object, _flags, list: readonly string[]) => (status = list[1] ?? ''));
    stream.on('error', () => undefined);
    stream.on('close', () => resolve(stream.rstCode === 0 ? status : `reset ${stream.rstCode}`));
    stream.resume();
  });
}

describe('a client that floods the tunnel ends it', () => {
  const reset = (stream: number): Buffer =>
    Buffer.concat([
      frame(HEADERS, END_STREAM | END_HEADERS, stream, REQUEST),
      frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8)),
    ]);
  const floods: readonly [string, Buffer, boolean][] = [
    [
      'settings that it does not read the answers of',
      Buffer.concat(numbers(600_000).map(() => frame(SETTINGS, 0, 0))),
      false,
    ],
    ['rapid resets', Buffer.concat(numbers(3000).map((at) => reset(2 * at + 1))), true],
    [
      'endless continuations',
      Buffer.concat([
        frame(HEADERS, END_STREAM, 1, REQUEST),
        ...numbers(5000).map(() => frame(CONTINUATION, 0, 1, fields([['x-a', 'x'.repeat(100)]]))),
      ]),
      true,
    ],
    [
      'empty pieces of a body',
      Buffer.concat([frame(HEADERS, END_HEADERS, 1, REQUEST), ...numbers(100_000).map(() => frame(DATA, 0, 1))]),
      true,
    ],
  ];

  test.each(floods)('%s', async (_what, bytes, reads) => {
    const got = await sendUntilClosed(bytes, reads);
    expect(goawayCode(got)).not.toBe(0);
    await expectOthersServed();
  });
});

test('a client that does not read the answers to its pings stops only itself', async () => {
  const socket = await plane.openTls(HOST, ['h2']);
  socket.on('error', () => undefined);
  socket.write(Buffer.concat([START, ...numbers(600_000).map(() => frame(PING, 0, 0, Buffer.alloc(8)))]));
  const before = process.memoryUsage.rss();
  for (let served = 0; served < 5; served += 1) await expectOthersServed();
  expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024);
  socket.destroy();
});

test('a credentialed reply ends upstream when its binding is removed, also for a client that does not read', async () => {
  plane.policy.use([bearerBinding(HOST)]);
  let upstream: ServerHttp2Stream | null = null;
  await plane.streamUpstream(HOST, (stream) => {
    upstream = stream;
    stream.respond({ ':status': 200 });
    const more = (): void => {
      while (!stream.destroyed && stream.write(Buffer.alloc(16_384)));
    };
    stream.on('drain', more);
    more();
  });
  const socket = await plane.openTls(HOST, ['h2']);
  socket.on('error', () => undefined);
  const most = Buffer.of(0x7f, 0xff, 0xff, 0xff);
  const settings = frame(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), most]));
  const window = frame(WINDOW_UPDATE, 0, 0, Buffer.of(0x7f, 0, 0, 0));
  const request = frame(HEADERS, END_STREAM | END_HEADERS, 1, REQUEST);
  socket.write(Buffer.concat([PREFACE, settings, window, request]));
  await expect.poll(() => upstream?.writableNeedDrain, { timeout: 20_000 }).toBe(true);
  await expect.poll(() => stillAfter(200, () => upstream?.writableLength), { timeout: 20_000 }).toBe(true);
  plane.policy.use([]);
  await expect.poll(() => upstream?.closed, { timeout: 10_000 }).toBe(true);
  socket.destroy();
});

async function stillAfter(ms: number, look: () => unknown): Promise<boolean> {
  const before = look();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return look() === before;
}

test('a body of single bytes keeps little more than its size, and stays in order', async () => {
  let session: ServerHttp2Session | null = null;
  const got: Buffer[] = [];
  await plane.streamUpstream(HOST, (stream, _fields, opened) => {
    session = opened;
    stream.on('data', (data: Buffer) => got.push(data));
  });
  const socket = await plane.openTls(HOST, ['h2']);
  socket.on('error', () => undefined);
  socket.write(Buffer.concat([START, frame(HEADERS, END_HEADERS, 1, REQUEST)]));
  await expect.poll(() => session).not.toBeNull();
  await new Promise<void>((resolve) => session?.settings({ initialWindowSize: 0 }, () => resolve()));
  // An unknown type is ignored (RFC 9113 section 4.1).
  const ignored = frame(250, 0, 0, Buffer.alloc(16_384));
  const before = countHeldBytes();
  for (let at = 0; at < 4000; at += 1) {
    const more = socket.write(Buffer.concat([frame(DATA, 0, 1, Buffer.of(at % 251)), ignored]));
    if (!more) await new Promise((resolve) => socket.once('drain', resolve));
  }
  await expect.poll(() => socket.writableLength).toBe(0);
  expect(countHeldBytes() - before).toBeLessThan(16_000_000);
  await new Promise<void>((resolve) => session?.settings({ initialWindowSize: 65_535 }, () => resolve()));
  await expect.poll(() => Buffer.concat(got).length, { timeout: 10_000 }).toBe(4000);
  expect(Buffer.concat(got).every((byte, at) => byte === at % 251)).toBe(true);
  socket.destroy();
});

function countHeldBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

test.each([
  ['reads', true],
  ['does not read', false],
])('an idle tunnel ends, also if its client %s and never closes', async (_what, reads) => {
  await plane.stop();
  plane = await startDataPlane({ idleTunnelSeconds: 1 });
  let ended = false;
  await plane.streamUpstream(HOST, (stream, _fields, session) => {
    session.on('close', () => (ended = true));
    stream.respond({ ':status': 200 });
    stream.end('hi');
  });
  const socket = await plane.openTls(HOST, ['h2']);
  socket.on('error', () => undefined);
  socket.allowHalfOpen = true;
  if (reads) socket.resume();
  socket.write(Buffer.concat([START, frame(HEADERS, END_STREAM | END_HEADERS, 1, REQUEST)]));
  await expect.poll(() => plane.audit.events.length).toBe(1);
  await expect.poll(() => [ended, plane.openTunnels()], { timeout: 10_000 }).toEqual([true, 0]);
  socket.destroy();
});

test('rapid resets cause a limited number of requests', async () => {
  const bytes = numbers(3000).map((at) =>
    Buffer.concat([
      frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, REQUEST),
      frame(RST_STREAM, 0, 2 * at + 1, Buffer.of(0, 0, 0, 8)),
    ]),
  );
  await sendUntilClosed(Buffer.concat(bytes));
  expect(requests).toBeLessThan(500);
  expect(plane.audit.events.length).toBeLessThan(500);
});

test('headers that grow when they are decompressed are refused, and reach no upstream', async () => {
  const large = fields([['x-a', 'y'.repeat(3500)]], 0x40);
  // The newest entry of the dynamic table, many times (RFC 7541 section 6.1).
  const bomb = Buffer.concat([REQUEST, large, Buffer.alloc(10_000, 0xbe)]);
  const socket = await plane.openTls(HOST, ['h2']);
  socket.on('error', () => undefined);
  const got: Buffer[] = [];
  socket.on('data', (data: Buffer) => got.push(data));
  socket.write(Buffer.concat([START, frame(HEADERS, END_STREAM | END_HEADERS, 1, bomb)]));
  await expect.poll(() => Buffer.concat(got).includes(frame(RST_STREAM, 0, 1, Buffer.alloc(0)).subarray(3))).toBe(true);
  expect(requests).toBe(0);
  socket.destroy();
  await expectOthersServed();
});

test('a client cannot open more streams at once than it is told', async () => {
  await plane.streamUpstream(HOST, () => void (requests += 1));
  const session = await plane.openSession(HOST);
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(100);
  session.destroy();
  const socket = await plane.openTls(HOST, ['h2']);
  const got: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => got.push(data));
  socket.write(START);
  await expect.poll(() => got.length).toBeGreaterThan(0);
  socket.write(frame(SETTINGS, 1, 0));
  socket.write(Buffer.concat(numbers(150).map((at) => frame(HEADERS, END_STREAM | END_HEADERS, 2 * at + 1, REQUEST))));
  await expect.poll(() => requests, { timeout: 5000 }).toBe(100);
  await expectOthersServed();
  expect(requests).toBe(101);
  socket.destroy();
});

test('no frames end more than their own tunnel', { timeout: 60_000 }, async () => {
  const anyFrame = fc
    .tuple(
      fc.integer({ min: 0, max: 12 }),
      fc.nat(255),
      fc.constantFrom(0, 1, 1, 3, 2, 7),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload));
  const frames = fc.array(
    fc.oneof(anyFrame, fc.constant(frame(HEADERS, END_HEADERS, 1, REQUEST)), fc.uint8Array({ maxLength: 30 })),
    {
      maxLength: 12,
    },
  );
  await fc.assert(
    fc.asyncProperty(frames, async (sent) => {
      const socket = await plane.openTls(HOST, ['h2']);
      socket.on('error', () => undefined);
      socket.resume();
      socket.end(Buffer.concat([START, ...sent]));
      await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    }),
    { numRuns: 60 },
  );
  await expect.poll(() => plane.openTunnels()).toBe(0);
  await expectOthersServed();
});
