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
  PRIORITY,
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
  plane = await startDataPlane({ connectTimeoutSeconds: 60 });
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
  await expect.poll(() => plane.openTunnels()).toBe(0);
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
  await expect.poll(() => upstream?.writableNeedDrain).toBe(true);
  await expect.poll(() => stillAfter(200, () => upstream?.writableLength)).toBe(true);
  plane.policy.use([]);
  await expect.poll(() => upstream?.closed).toBe(true);
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
  await expect.poll(() => countHeldBytes() - before).toBeLessThan(16_000_000);
  await new Promise<void>((resolve) => session?.settings({ initialWindowSize: 65_535 }, () => resolve()));
  await expect.poll(() => Buffer.concat(got).length).toBe(4000);
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
  await expect.poll(() => [ended, plane.openTunnels()]).toEqual([true, 0]);
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
  await expect.poll(() => requests).toBe(100);
  await expectOthersServed();
  expect(requests).toBe(101);
  socket.destroy();
});

test.each([
  ['data', [frame(DATA, END_STREAM, 1, Buffer.from('body'))]],
  ['empty data', [frame(DATA, 0, 1, Buffer.from('body')), frame(DATA, END_STREAM, 1)]],
  ['trailers', [frame(HEADERS, END_STREAM | END_HEADERS, 1, fields([['x-a', 'b']]))]],
  ['data and trailers', [frame(DATA, 0, 1, Buffer.from('body')), frame(HEADERS, END_STREAM | END_HEADERS, 1, fields([['x-a', 'b']]))]], // prettier-ignore
])('a request that arrives whole with the end of the handshake is whole: %s', async (_what, rest) => {
  await plane.streamUpstream(HOST, (stream) => {
    stream.resume().on('end', () => {
      if (stream.closed) return;
      stream.respond({ ':status': 200 });
      stream.end('whole');
    });
  });
  for (const bindings of [[], [bearerBinding(HOST)], [bearerBinding(HOST, { body: 'stream' })]]) {
    plane.policy.use(bindings);
    const early = Buffer.concat([START, frame(HEADERS, END_HEADERS, 1, REQUEST), ...rest]);
    const socket = await plane.openTls(HOST, ['h2'], HOST, early);
    let got = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => (got = Buffer.concat([got, data])));
    await expect.poll(() => readFrames(got).some(({ stream }) => stream === 1)).toBe(true);
    await expect
      .poll(() => got.includes('whole') || readFrames(got).some(({ type }) => type === RST_STREAM))
      .toBe(true);
    expect(got.includes('whole')).toBe(true);
    socket.destroy();
  }
});

/** A step of a conversation: what a client sends about one of its streams, or about its connection. */
type Step =
  | { readonly kind: 'open' | 'data' | 'trailers' | 'reset'; readonly which: number; readonly ends: boolean }
  | { readonly kind: 'connection' | 'wrong'; readonly bytes: Buffer };

const OF_CONNECTION = [
  frame(PING, 0, 0, Buffer.alloc(8)),
  frame(SETTINGS, 0, 0),
  frame(WINDOW_UPDATE, 0, 0, Buffer.of(0, 0, 1, 0)),
  frame(PRIORITY, 0, 1, Buffer.of(0, 0, 0, 0, 9)),
  // An unknown type is ignored (RFC 9113 section 4.1).
  frame(250, 255, 1, Buffer.from('ignored')),
];
/** A whole reset or setting would be right, and could rightly keep a reply from being sent. */
const isWhole = ([type, _flags, _stream, { length }]: readonly [number, number, number, Uint8Array]): boolean =>
  (type === RST_STREAM && length === 4) || (type === SETTINGS && length % 6 === 0);
const anyWrong = fc
  .tuple(fc.nat(12), fc.nat(255), fc.constantFrom(0, 1, 2, 3, 7), fc.uint8Array({ maxLength: 40 }))
  .filter((made) => !isWhole(made))
  .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload));
const kinds = fc.constantFrom('open' as const, 'open' as const, 'data' as const, 'data' as const, 'trailers' as const, 'reset' as const); // prettier-ignore
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: fc.record({ kind: kinds, which: fc.nat(5), ends: fc.boolean() }) },
    {
      weight: 4,
      arbitrary: fc.constantFrom(...OF_CONNECTION).map((bytes) => ({ kind: 'connection' as const, bytes })),
    },
    { weight: 1, arbitrary: anyWrong.map((bytes) => ({ kind: 'wrong' as const, bytes })) },
  ),
  { minLength: 1, maxLength: 25 },
);

/** The frames of a conversation, and the streams that ended in order: each of them has a reply. */
function framesOf(conversation: readonly Step[]): { readonly bytes: Buffer[]; readonly whole: number[] } {
  const [bytes, open, whole]: [Buffer[], number[], Set<number>] = [[], [], new Set()];
  let next = 1;
  for (const step of conversation) {
    const stream = 'which' in step ? open[step.which % Math.max(open.length, 1)] : undefined;
    if ('bytes' in step) bytes.push(step.bytes);
    else if (step.kind === 'open') {
      bytes.push(frame(HEADERS, END_HEADERS | (step.ends ? END_STREAM : 0), next, REQUEST));
      if (step.ends) whole.add(next);
      else open.push(next);
      next += 2;
    } else if (stream !== undefined) {
      const ends = step.kind === 'trailers' || step.ends;
      if (step.kind === 'data') bytes.push(frame(DATA, ends ? END_STREAM : 0, stream, Buffer.from('part')));
      else if (step.kind === 'reset') bytes.push(frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8)));
      else bytes.push(frame(HEADERS, END_HEADERS | END_STREAM, stream, fields([['x-a', 'b']])));
      if (step.kind !== 'reset' && ends) whole.add(stream);
      if (step.kind === 'reset' || ends) open.splice(open.indexOf(stream), 1);
    }
  }
  return { bytes, whole: [...whole] };
}

test('any conversation is answered, and one with a wrong frame ends no more than its own tunnel', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (conversation, isBound) => {
      plane.policy.use(isBound ? [bearerBinding(HOST)] : []);
      const { bytes, whole } = framesOf(conversation);
      const isRight = conversation.every(({ kind }) => kind !== 'wrong');
      const socket = await plane.openTls(HOST, ['h2']);
      let got = Buffer.alloc(0);
      let hasEnded = false;
      socket.on('error', () => undefined);
      socket.on('end', () => (hasEnded = true)).on('close', () => (hasEnded = true));
      socket.on('data', (data: Buffer) => (got = Buffer.concat([got, data])));
      socket.write(START);
      for (const piece of bytes) socket.write(piece);
      socket.write(frame(PING, 0, 0, Buffer.from('the last')));
      const isAnswered = (): boolean => {
        const received = readFrames(got);
        const isPinged = received.some(({ type, payload }) => type === PING && payload.includes('the last'));
        const ends = received.filter(
          ({ type, flags }) => (type === DATA || type === HEADERS) && (flags & END_STREAM) > 0,
        );
        return isPinged && whole.every((stream) => ends.some((end) => end.stream === stream));
      };
      const isRefused = (): boolean => readFrames(got).some(({ type }) => type === RST_STREAM || type === GOAWAY);
      await expect.poll(() => hasEnded || isAnswered() || (!isRight && isRefused())).toBe(true);
      expect(!isRight || (!hasEnded && isAnswered())).toBe(true);
      expect(got.includes(SECRET)).toBe(false);
      socket.destroy();
    }),
    { numRuns: 50 },
  );
  await expect.poll(() => plane.openTunnels()).toBe(0);
  expect(plane.budget.heldBytes).toBe(0);
  await expectOthersServed();
});

/** What a client gets in a new tunnel with this credential, for three requests in turn. */
async function framesWith(secret: string): Promise<{ readonly heads: string[]; readonly body: string }> {
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, secret);
  const socket = await plane.openTls(HOST, ['h2']);
  let got = Buffer.alloc(0);
  socket.on('error', () => undefined);
  socket.on('data', (data: Buffer) => (got = Buffer.concat([got, data])));
  socket.write(START);
  const ofType = (wanted: number) => readFrames(got).filter(({ type }) => type === wanted);
  for (const stream of [1, 3, 5]) {
    socket.write(frame(HEADERS, END_STREAM | END_HEADERS, stream, REQUEST));
    const isOver = (): boolean =>
      ofType(HEADERS).some((one) => one.stream === stream && (one.flags & END_STREAM) !== 0);
    await expect.poll(isOver).toBe(true);
  }
  socket.destroy();
  return {
    heads: ofType(HEADERS).map(({ flags, stream, payload }) => `${stream} ${flags} ${payload.toString('hex')}`),
    body: Buffer.concat(ofType(DATA).map(({ payload }) => payload)).toString('latin1'),
  };
}

describe('compression says nothing of a credential', () => {
  /** Of one length, and of two lengths in Huffman code. The replies have a part of the first. */
  const SECRETS = ['planted-secret-aeiost-0123', 'planted-secret-XZ&~|{}<>^`'] as const;
  const GUESS = 'planted-secret-aeiost-012';

  test('to the client: heads and trailers are the same, octet by octet, in a tunnel whose replies do not contain it', async () => {
    await plane.streamUpstream(HOST, (stream) => {
      stream.additionalHeaders({ ':status': 103, link: `<${GUESS}>` });
      // Node's own would differ between one second and the next.
      const date = ['date', 'Mon, 01 Jan 2024 00:00:00 GMT'];
      stream.respond([':status', '200', ...date, 'x-guess', GUESS, `x-${GUESS}`, 'b'], { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-guess': GUESS }));
      stream.end(GUESS);
    });
    plane.policy.use([bearerBinding(HOST)]);
    const first = await framesWith(SECRETS[0]);
    expect(first.heads).toHaveLength(9);
    expect(await framesWith(SECRETS[1])).toEqual(first);
  });

  test('to the upstream: it is a literal that is never indexed, each time, whatever else the client sends', async () => {
    const blocks: Buffer[] = [];
    await plane.frameUpstream(HOST, (socket) => {
      let got = Buffer.alloc(0);
      let answered = 0;
      socket.on('data', (data: Buffer) => {
        got = Buffer.concat([got, data]);
        const heads = readFrames(got.subarray(PREFACE.length)).filter(({ type }) => type === HEADERS);
        for (const { stream, payload } of heads.slice(answered)) {
          blocks.push(payload);
          socket.write(frame(HEADERS, END_STREAM | END_HEADERS, stream, fields([[':status', '200']])));
        }
        answered = heads.length;
      });
      socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, 1, 0)]));
    });
    plane.policy.use([bearerBinding(HOST)]);
    const session = await plane.openSession(HOST);
    for (const guess of [SECRET, SECRET, 'other', SECRET]) {
      const list = [
        ':method',
        'GET',
        ':scheme',
        'https',
        ':authority',
        HOST,
        ':path',
        '/',
        'x-guess',
        `Bearer ${guess}`,
      ];
      await new Promise<void>((resolve) => void session.request(list).on('close', resolve).resume());
    }
    session.destroy();
    // The name is index 23 of the static table; then the value, in Huffman code (RFC 7541 section 6.2.3).
    const values = blocks.map((block) => block.subarray(block.indexOf(Buffer.of(0x1f, 0x08)) + 2));
    expect(new Set(values.map((value) => value.toString('hex'))).size).toBe(1);
    expect(values[0]?.length).toBeGreaterThan(20);
  });
});
