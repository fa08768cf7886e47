import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { DataPlane, StreamHandler } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { startDataPlane } from '../testing/data_plane.ts';
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  fields,
  frame,
  GOAWAY,
  HEADERS,
  PADDED,
  PING,
  PREFACE,
  PRIORITY,
  PUSH_PROMISE,
  readFrames,
  type ReceivedFrame,
  RST_STREAM,
  settings,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from '../testing/frames.ts';

/**
 * What HTTP/2 has in place of HTTP/1.1's framing and syntax: a message that two servers could read in two ways ends its stream,
 * a frame that does so ends its tunnel, and neither reaches the upstream (RFC 9113 sections 5, 6 and 8).
 */

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';

let plane: DataPlane;
/** The fields of each request that the upstream received, and whether it ended. */
let seen: (readonly string[])[];
let ended: number;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  [seen, ended] = [[], 0];
  await plane.streamUpstream(HOST, (stream, list) => {
    seen.push(list);
    stream.resume();
    stream.on('end', () => {
      if (stream.closed) return;
      ended += 1;
      stream.respond({ ':status': 200 });
      stream.end('hi');
    });
  });
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

type Pairs = readonly (readonly [string, string])[];

const BASE: Pairs = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':authority', HOST],
  [':path', '/bad'],
];
/** Asked on another stream of the same tunnel. */
const GOOD = fields(BASE.map(([name, value]) => [name, value === '/bad' ? '/good' : value]));

const without = (name: string): Pairs => BASE.filter(([own]) => own !== name);
const replaced = (name: string, value: string): Pairs => BASE.map((own) => (own[0] === name ? [name, value] : own));
const head = (list: Pairs, flags = END_STREAM): Buffer => frame(HEADERS, flags | END_HEADERS, 1, fields(list));
const withBody = (more: Pairs, body: string, end: Buffer = frame(DATA, END_STREAM, 1)): Buffer =>
  Buffer.concat([head([...BASE, ...more], 0), frame(DATA, 0, 1, Buffer.from(body)), end]);
const ask = (stream: number): Buffer => frame(HEADERS, END_STREAM | END_HEADERS, stream, GOOD);

/** What a tunnel answered: to the first stream, and to the good one after it. */
interface Answered {
  readonly first: string;
  readonly isGoodServed: boolean;
  readonly hasEnded: boolean;
  readonly goaway: number | null;
}

/** Sends these bytes in a new tunnel, then a good request, and reads until both are answered or the tunnel has ended. */
async function send(bytes: Buffer, preface = PREFACE): Promise<Answered> {
  const socket = await plane.openTls(HOST, ['h2']);
  let got = Buffer.alloc(0);
  let hasEnded = false;
  socket.on('error', () => undefined);
  socket.on('close', () => (hasEnded = true));
  socket.on('end', () => (hasEnded = true));
  socket.on('data', (data: Buffer) => (got = Buffer.concat([got, data])));
  socket.write(Buffer.concat([preface, settings(), bytes, ask(99)]));
  const look = (): Answered => {
    const frames = readFrames(got);
    const ofStream = (stream: number): ReceivedFrame[] => frames.filter((one) => one.stream === stream);
    return {
      first: answerOf(ofStream(1)),
      isGoodServed: answerOf(ofStream(99)) === '200',
      hasEnded,
      goaway: frames.find(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4) ?? null,
    };
  };
  await expect
    .poll(() => {
      const { first, isGoodServed } = look();
      return hasEnded || (isGoodServed && first !== 'nothing');
    })
    .toBe(true);
  socket.destroy();
  await expect.poll(() => plane.openTunnels()).toBe(0);
  return look();
}

/** The first octet of a head tells a status of the static table (RFC 7541 appendix A). */
const STATUSES: Readonly<Record<number, string>> = { 0x88: '200', 0x8c: '400' };

function answerOf(frames: readonly ReceivedFrame[]): string {
  const reply = frames.find(({ type }) => type === HEADERS);
  if (reply !== undefined) return STATUSES[reply.payload[0] ?? 0] ?? 'another status';
  return frames.some(({ type }) => type === RST_STREAM) ? 'reset' : 'nothing';
}

/** The rest of a body that is longer than it was said to be could be read as another request. */
const LONGER: readonly (readonly [string, Buffer])[] = [
  ['a body longer than its content-length', withBody([['content-length', '3']], 'four')],
  ['a request after its content-length', withBody([['content-length', '0']], 'GET / HTTP/1.1\r\n\r\n')],
];

describe('a request that could be read in two ways is refused or reset, and its neighbours are served', () => {
  const CASES: readonly (readonly [string, Buffer])[] = [
    ['a body shorter than its content-length', withBody([['content-length', '9']], 'four')],
    ['a content-length without a body', head([...BASE, ['content-length', '5']])],
    ['two content-lengths', withBody([['content-length', '4'], ['content-length', '4']], 'four')], // prettier-ignore
    ['two different content-lengths', withBody([['content-length', '4'], ['content-length', '9']], 'four')], // prettier-ignore
    ['a list of content-lengths', withBody([['content-length', '4, 4']], 'four')],
    ['a content-length with a sign', withBody([['content-length', '+4']], 'four')],
    ['a content-length with a leading zero', withBody([['content-length', '04']], 'four')],
    ['a content-length in hexadecimal', withBody([['content-length', '0x4']], 'four')],
    ['a negative content-length', withBody([['content-length', '-4']], 'four')],
    ['a content-length beyond 64 bits', withBody([['content-length', '18446744073709551620']], 'four')],
    ['a transfer-encoding', withBody([['transfer-encoding', 'chunked']], '0\r\n\r\n')],
    ['both framings', withBody([['content-length', '5'], ['transfer-encoding', 'chunked']], '0\r\n\r\n')], // prettier-ignore
    ...['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'http2-settings'].map(
      (name) => [`a ${name} header`, head([...BASE, [name, 'x']])] as const,
    ),
    ['another te than trailers', head([...BASE, ['te', 'gzip']])],
    ['te with more than trailers', head([...BASE, ['te', 'trailers, gzip']])],
    ['no :method', head(without(':method'))],
    ['no :path', head(without(':path'))],
    ['no :scheme', head(without(':scheme'))],
    ['no :authority', head(without(':authority'))],
    ['an empty :path', head(replaced(':path', ''))],
    ['an empty :method', head(replaced(':method', ''))],
    ['an empty :authority', head(replaced(':authority', ''))],
    ['a :path without a slash', head(replaced(':path', 'bad'))],
    ['a :path with an authority', head(replaced(':path', `https://${HOST}/bad`))],
    ['a :path with a line of HTTP/1.1', head(replaced(':path', '/bad HTTP/1.1\r\nHost: evil.test'))],
    ['a :path with a space', head(replaced(':path', '/bad x'))],
    ['a :path with a fragment and a line feed', head(replaced(':path', '/bad#\n'))],
    ['a :method with a space', head(replaced(':method', 'GET /x'))],
    ['a :method with a line break', head(replaced(':method', 'GET\r\nx: y'))],
    ['the :scheme http', head(replaced(':scheme', 'http'))],
    ['a :scheme with a line break', head(replaced(':scheme', 'https\r\nx: y'))],
    ['an :authority with a line break', head(replaced(':authority', `${HOST}\r\nx: y`))],
    ['an :authority with a NUL', head(replaced(':authority', `${HOST}\0`))],
    ...BASE.map(([name, value]) => [`${name} twice`, head([...BASE, [name, value]])] as const),
    ['two :path', head([...BASE, [':path', '/other']])],
    ['an unknown pseudo-header field', head([...BASE, [':x', 'y']])],
    ['the :status of a reply', head([...BASE, [':status', '200']])],
    ['a pseudo-header field after a header', head([...without(':path'), ['x-a', 'b'], [':path', '/bad']])],
    ['CONNECT', head([[':method', 'CONNECT'], [':authority', HOST]])], // prettier-ignore
    ['CONNECT with a path', head(replaced(':method', 'CONNECT'))],
    ['an extended CONNECT', head([...replaced(':method', 'CONNECT'), [':protocol', 'websocket']])],
    ['a :protocol', head([...BASE, [':protocol', 'websocket']])],
    ['a name in upper case', head([...BASE, ['X-A', 'b']])],
    ['a Host of another host', head([...BASE, ['host', 'evil.example.test']])],
    ['two Hosts', head([...BASE, ['host', HOST], ['host', 'evil.example.test']])], // prettier-ignore
    ['trailers with a path', withBody([], 'x', frame(HEADERS, END_STREAM | END_HEADERS, 1, fields([[':path', '/']])))],
    [
      'trailers with an authority',
      withBody([], 'x', frame(HEADERS, END_STREAM | END_HEADERS, 1, fields([[':authority', 'evil.test']]))),
    ],
    ['trailers that do not end it', withBody([], 'x', frame(HEADERS, END_HEADERS, 1, fields([['x-a', 'b']])))],
    ['trailers with a connection header', withBody([], 'x', frame(HEADERS, END_STREAM | END_HEADERS, 1, fields([['transfer-encoding', 'chunked']])))], // prettier-ignore
    ['more headers than are allowed', head([...BASE, ...Array.from({ length: 401 }, () => ['x-a', 'b'] as const)])],
  ];

  test.each(CASES)('%s', async (_what, bytes) => {
    plane.policy.use([bearerBinding(HOST)]);
    const { first, isGoodServed, goaway } = await send(bytes);
    expect(first).toMatch(/^(?:400|reset|another status)$/);
    expect([isGoodServed, goaway]).toEqual([true, null]);
    expect(seen.map((list) => list.includes('/good'))).toEqual([true]);
    expect(plane.budget.heldBytes).toBe(0);
  });

  const inItsBody = CASES.filter(([what]) => what.includes('content-length') || what.includes('trailers'));
  test.each([...inItsBody, ...LONGER])(
    'without a binding its upstream never sees the end of %s',
    async (_what, bytes) => {
      const { first, isGoodServed, hasEnded } = await send(bytes);
      expect(hasEnded || (isGoodServed && first !== 'nothing')).toBe(true);
      expect([first === '200', ended]).toEqual([false, isGoodServed ? 1 : 0]);
    },
  );
});

const recordAndAnswer: StreamHandler = (stream, list) => {
  seen.push(list);
  stream.respond({ ':status': 200 });
  stream.end('hi');
};

describe('an extended CONNECT in a tunnel whose upstream takes WebSockets', () => {
  const CONNECT: Pairs = [...replaced(':method', 'CONNECT'), [':protocol', 'websocket']];
  const lacking = (name: string): Pairs => CONNECT.filter(([own]) => own !== name);

  beforeEach(async () => {
    await plane.streamUpstream(HOST, recordAndAnswer, ['h2'], { enableConnectProtocol: true });
  });

  test.each<readonly [string, Pairs]>([
    ['no :scheme', lacking(':scheme')],
    ['no :path', lacking(':path')],
    ['no :authority', lacking(':authority')],
    ['neither :scheme nor :path', lacking(':scheme').filter(([name]) => name !== ':path')],
    ['no :protocol', lacking(':protocol')],
    ['no :method', lacking(':method')],
    ['two :protocol', [...CONNECT, [':protocol', 'websocket']]],
    ['an empty :protocol', [...lacking(':protocol'), [':protocol', '']]],
    ['a :protocol with a line break', [...lacking(':protocol'), [':protocol', 'websocket\r\nx: y']]],
    ['a :protocol after a header', [...lacking(':protocol'), ['x-a', 'b'], [':protocol', 'websocket']]],
  ])('that has %s ends its stream alone', async (_what, list) => {
    plane.policy.use([bearerBinding(HOST)]);
    const { first, isGoodServed, goaway } = await send(head(list, 0));
    expect(first).toMatch(/^(?:400|reset|another status)$/);
    expect([isGoodServed, goaway]).toEqual([true, null]);
    expect(seen.map((received) => received.includes('/good'))).toEqual([true]);
  });
});

describe('a header that nghttp2 drops reaches nobody', () => {
  test.each<readonly [string, readonly [string, string]]>([
    ['a value with a line break', ['x-a', 'b\r\nx-evil: 1']],
    ['a value with a line feed', ['x-a', 'b\nx-evil: 1']],
    ['a value with a NUL', ['x-a', 'b\0x-evil']],
    ['a name with a colon', ['x-evil:a', 'b']],
    ['a name with a space', ['x-evil ', 'b']],
    ['a name with a line break', ['x-evil\r\ny', 'b']],
    ['an empty name', ['', 'x-evil']],
  ])('%s', async (_what, field) => {
    for (const bindings of [[], [bearerBinding(HOST)]]) {
      plane.policy.use(bindings);
      const { isGoodServed } = await send(head([...BASE, field]));
      expect(isGoodServed).toBe(true);
    }
    expect(seen.flat().join(' ')).not.toMatch(/x-evil|[\r\n\0]/);
  });
});

describe('a frame that breaks the protocol ends its tunnel', () => {
  const ZERO = frame(HEADERS, END_STREAM | END_HEADERS, 0, GOOD);
  const headed = head(BASE, 0);
  test.each<readonly [string, Buffer]>([
    ...LONGER,
    [
      'a window that overflows its stream',
      Buffer.concat([head(BASE, 0), frame(WINDOW_UPDATE, 0, 1, uint32(0x7fff_ffff))]),
    ],
    ['headers on stream 0', ZERO],
    ['data on stream 0', frame(DATA, 0, 0, Buffer.from('x'))],
    ['headers on an even stream', frame(HEADERS, END_STREAM | END_HEADERS, 2, GOOD)],
    ['data on a stream that was not opened', frame(DATA, 0, 7, Buffer.from('x'))],
    ['a reset of a stream that was not opened', frame(RST_STREAM, 0, 7, uint32(8))],
    ['a window for a stream that was not opened', frame(WINDOW_UPDATE, 0, 7, uint32(1))],
    ['data after the end', Buffer.concat([head(BASE), frame(DATA, END_STREAM, 1, Buffer.from('x'))])],
    ['headers after the end', Buffer.concat([head(BASE), head(BASE)])],
    ['an empty window for the connection', frame(WINDOW_UPDATE, 0, 0, uint32(0))],
    ['a window that overflows the connection', frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff))],
    ['a window of three octets', frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
    ['settings of five octets', frame(SETTINGS, 0, 0, Buffer.alloc(5))],
    ['settings on a stream', frame(SETTINGS, 0, 1)],
    ['an acknowledgement with settings', frame(SETTINGS, ACK, 0, Buffer.alloc(6))],
    ['a window setting that is too large', settings([4, 0x8000_0000])],
    ['a frame size that is too small', settings([5, 1])],
    ['a frame size that is too large', settings([5, 0x0100_0000])],
    ['a push setting that is no boolean', settings([2, 2])],
    ['a window setting that overflows an open stream', Buffer.concat([headed, frame(WINDOW_UPDATE, 0, 1, uint32(0x7fff_0000)), settings([4, 0x7fff_ffff])])], // prettier-ignore
    ['a ping of seven octets', frame(PING, 0, 0, Buffer.alloc(7))],
    ['a ping on a stream', frame(PING, 0, 1, Buffer.alloc(8))],
    ['a reset of three octets', Buffer.concat([headed, frame(RST_STREAM, 0, 1, Buffer.alloc(3))])],
    ['a GOAWAY on a stream', frame(GOAWAY, 0, 1, Buffer.alloc(8))],
    ['a GOAWAY of four octets', frame(GOAWAY, 0, 0, Buffer.alloc(4))],
    ['a continuation of nothing', frame(CONTINUATION, END_HEADERS, 1, GOOD)],
    ['a continuation of another stream', Buffer.concat([frame(HEADERS, 0, 1, GOOD), frame(CONTINUATION, END_HEADERS, 3)])], // prettier-ignore
    ['data between headers and their continuation', Buffer.concat([frame(HEADERS, 0, 1, GOOD), frame(DATA, 0, 1)])],
    ['another stream between headers and their continuation', Buffer.concat([frame(HEADERS, 0, 1, GOOD), ask(3)])],
    ['a push', frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([uint32(2), GOOD]))],
    ['padding that is longer than its data', Buffer.concat([headed, frame(DATA, PADDED, 1, Buffer.of(9, 1, 2))])],
    ['padding that is longer than its headers', frame(HEADERS, PADDED | END_HEADERS, 1, Buffer.of(255, 0x82))],
    ['a frame larger than was agreed', Buffer.concat([headed, frame(DATA, 0, 1, Buffer.alloc(16_385))])],
    ['a priority of four octets', frame(PRIORITY, 0, 1, Buffer.alloc(4))],
    ['an index beyond the tables', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0xff, 0x80, 0x7f))],
    ['the index 0', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0x80))],
    ['a table larger than was agreed', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0x3f, 0xff, 0xff, 0x7f))],
    ['a new table size after a field', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0x82, 0x20))],
    ['an integer without an end', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.alloc(40, 0xff))],
    ['a text beyond its block', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0, 0x7f, 0x20, 0x61))],
    ['Huffman code that ends early', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0, 0x81, 0xff, 1, 0x61))],
    ['the end symbol in Huffman code', frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0, 0x84, 0xff, 0xff, 0xff, 0xff, 1, 0x61))], // prettier-ignore
  ])('%s', async (_what, bytes) => {
    plane.policy.use([bearerBinding(HOST)]);
    const { hasEnded, isGoodServed, goaway } = await send(bytes);
    expect([hasEnded, isGoodServed]).toEqual([true, false]);
    expect(goaway).not.toBe(0);
    expect(seen.filter((list) => list.includes('/good'))).toEqual([]);
  });

  test('headers on a stream below the last open one reach nobody', async () => {
    const { isGoodServed } = await send(Buffer.concat([head(BASE), ask(5), ask(3)]));
    expect([isGoodServed, seen]).toEqual([true, expect.objectContaining({ length: 3 })]);
  });

  test.each([
    ['a request of HTTP/1.1', `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['another preface', 'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n'],
    ['TLS in TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('%s in place of the preface', async (_what, text) => {
    plane.policy.use([bearerBinding(HOST)]);
    const { hasEnded, isGoodServed } = await send(Buffer.alloc(0), Buffer.from(text, 'latin1'));
    expect([hasEnded, isGoodServed, seen]).toEqual([true, false, []]);
    expect(plane.audit.events.map(({ data }) => data['svc.proxy.reason'])).toEqual(['client_gone']);
  });

  test.each([
    ['in the preface', PREFACE.subarray(0, 20)],
    ['in a head', Buffer.concat([PREFACE, settings(), frame(HEADERS, END_STREAM, 1, GOOD)])],
    ['in a frame', Buffer.concat([PREFACE, settings(), ask(1).subarray(0, 30)])],
  ])('a client that ends %s is recorded once, and asks nothing', async (_where, bytes) => {
    const socket = await plane.openTls(HOST, ['h2']);
    socket.on('error', () => undefined);
    socket.resume();
    socket.end(bytes);
    await expect.poll(() => plane.openTunnels()).toBe(0);
    expect(plane.audit.events.map(({ data }) => data['svc.proxy.reason'])).toEqual(['client_gone']);
    expect(seen).toEqual([]);
  });
});
