import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { DataPlane } from '../testing/data_plane.ts';
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
  PUSH_PROMISE,
  RST_STREAM,
  settings,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from '../testing/frames.ts';

/** Upstreams that write frames of HTTP/2 themselves. No client believes them, and the tunnels of others go on. */

const HOST = 'api.example.test';
const OTHER = 'other.example.test';
const SECRET = 'planted-secret-0123456789';

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane({ connectTimeoutSeconds: 60 });
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  await plane.streamUpstream(OTHER, (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('hi');
  });
});

afterEach(async () => {
  expect(JSON.stringify(plane.audit.events)).not.toContain(SECRET);
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** A reply as its client received it: `reset` and a code, or its status; `isWhole` if it looks complete. */
interface Got {
  readonly outcome: string;
  readonly body: string;
  readonly isWhole: boolean;
  readonly text: string;
}

function ask(session: ClientHttp2Session, host = HOST, method = 'GET'): Promise<Got> {
  const list = [':method', method, ':scheme', 'https', ':authority', host, ':path', '/'];
  return read(session.request(list, { endStream: method === 'GET' }));
}

function read(stream: ClientHttp2Stream): Promise<Got> {
  return new Promise((resolve) => {
    let [status, body, text, isWhole] = ['', '', '', false];
    const note = (_object: unknown, _flags: number, list: readonly string[]): void => void (text += list.join(' '));
    for (const event of ['headers', 'response', 'trailers']) stream.on(event, note);
    stream.on('response', (_object, _flags, list: readonly string[]) => (status = list[1] ?? ''));
    stream.on('data', (data: Buffer) => (body += data.toString('latin1')));
    stream.on('end', () => (isWhole = !stream.closed));
    stream.on('error', () => undefined);
    stream.on('close', () => {
      const outcome = stream.rstCode === 0 ? status : `reset ${stream.rstCode}`;
      resolve({ outcome, body, isWhole: isWhole && stream.rstCode === 0, text: text + body });
    });
  });
}

async function expectOthersServed(): Promise<void> {
  const session = await plane.openSession(OTHER);
  expect(await ask(session, OTHER)).toMatchObject({ outcome: '200', body: 'hi' });
  session.destroy();
}

/** An upstream that writes these frames when it has read the first bytes of a client, and its part of the handshake. */
function answering(...written: readonly (Buffer | ((socket: TLSSocket) => void))[]): Promise<void> {
  return plane.frameUpstream(HOST, (socket) => {
    socket.once('data', () => {
      socket.write(Buffer.concat([settings(), frame(SETTINGS, ACK, 0)]));
      for (const one of written) {
        if (typeof one === 'function') one(socket);
        else socket.write(one);
      }
    });
    socket.resume();
  });
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

type Pairs = readonly (readonly [string, string])[];

const OK: Pairs = [[':status', '200']];
const head = (list: Pairs, flags = 0, stream = 1): Buffer => frame(HEADERS, flags | END_HEADERS, stream, fields(list));
const data = (text: string, flags = 0, stream = 1): Buffer => frame(DATA, flags, stream, Buffer.from(text));
const reset = (code: number, stream = 1): Buffer => frame(RST_STREAM, 0, stream, uint32(code));
const REQUEST: Pairs = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', HOST],
  [':path', '/'],
];
const whole = Buffer.concat([head(OK), data('done', END_STREAM)]);
/** In the fields of a reply, or after them, this must not reach the client. */
const EVIL = 'evil';

const TWO_BINDINGS = [[], [bearerBinding(HOST)]] as const;

async function askBoth(look: (got: Got) => void): Promise<void> {
  for (const bindings of TWO_BINDINGS) {
    plane.policy.use(bindings);
    const session = await plane.openSession(HOST);
    look(await ask(session));
    session.destroy();
    await expect.poll(() => plane.openTunnels()).toBe(0);
  }
  await expectOthersServed();
}

describe('a head that is no reply is a 502', () => {
  test.each<readonly [string, Buffer]>([
    ['no :status', head([['x-a', 'b']], END_STREAM)],
    ['two :status', head([...OK, ...OK], END_STREAM)],
    ['a :status of two digits', head([[':status', '20']], END_STREAM)],
    ['a :status of four digits', head([[':status', '2000']], END_STREAM)],
    ['a :status below 100', head([[':status', '099']], END_STREAM)],
    ['a :status above 599', head([[':status', '600']], END_STREAM)],
    ['a :status with a sign', head([[':status', '+20']], END_STREAM)],
    ['a :status of letters', head([[':status', 'abc']], END_STREAM)],
    ['a protocol switch', head([[':status', '101']])],
    ['a :status after a header', head([['x-a', 'b'], ...OK], END_STREAM)],
    ['the :path of a request', head([...OK, [':path', '/']], END_STREAM)],
    ['an unknown pseudo-header field', head([...OK, [':x', 'y']], END_STREAM)],
    ['a name in upper case', head([...OK, ['X-A', 'b']], END_STREAM)],
    ['a connection header', head([...OK, ['connection', 'close']], END_STREAM)],
    ['a transfer-encoding', head([...OK, ['transfer-encoding', 'chunked']], END_STREAM)],
    ['an upgrade', head([...OK, ['upgrade', 'h2c']], END_STREAM)],
    ['a keep-alive', head([...OK, ['keep-alive', '5']], END_STREAM)],
    ['an http2-settings', head([...OK, ['http2-settings', 'AAMAAABk']], END_STREAM)],
    ['another te than trailers', head([...OK, ['te', 'gzip']], END_STREAM)],
    ['a content-length without a body', head([...OK, ['content-length', '5']], END_STREAM)],
    ['two content-lengths', head([...OK, ['content-length', '5'], ['content-length', '6']])],
    ['a content-length that is no number', head([...OK, ['content-length', '5x']])],
    ['a content-length of two numbers', head([...OK, ['content-length', '5, 6']])],
    ['an interim head that ends it', head([[':status', '103']], END_STREAM)],
    ['more headers than are allowed', head([...OK, ...numbers(201).map(() => ['x-a', 'b'] as const)], END_STREAM)],
    ['headers that are too large', head([...OK, ['x-a', 'b'.repeat(70_000)]], END_STREAM).subarray(0, 16_393)],
    ['a body before its head', Buffer.concat([data(EVIL), head(OK, END_STREAM)])],
    ['its end before its head', data('', END_STREAM)],
    ['endless interim heads', Buffer.concat(numbers(300).map(() => head([[':status', '103']])))],
    [
      'interim heads that are too large together',
      Buffer.concat([...numbers(10).map(() => head([[':status', '103'], ['link', 'x'.repeat(8000)]])), whole]), // prettier-ignore
    ],
    [
      'endless continuations',
      Buffer.concat([
        frame(HEADERS, 0, 1, fields(OK)),
        ...numbers(3000).map(() => frame(CONTINUATION, 0, 1, fields([['x-a', 'b'.repeat(100)]]))),
      ]),
    ],
    [
      'headers that grow when they are decompressed',
      frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        1,
        Buffer.concat([fields(OK), fields([['x-a', 'b'.repeat(3500)]], 0x40), Buffer.alloc(10_000, 0xbe)]),
      ),
    ],
  ])('%s', async (_what, bytes) => {
    await answering(bytes, (socket) => void socket.end());
    await askBoth(({ outcome, text }) => {
      expect(outcome).toMatch(/^(?:502|reset \d+)$/);
      expect(text).not.toContain(EVIL);
    });
  });
});

describe('a header that nghttp2 drops reaches nobody', () => {
  test.each<readonly [string, readonly [string, string]]>([
    ['a value with a line break', ['x-a', 'b\r\nevil: 1']],
    ['a value with a NUL', ['x-a', 'b\0evil']],
    ['a name with a colon', ['evil:a', 'b']],
    ['a name with a line break', ['evil\r\ny', 'b']],
    ['an empty name', ['', 'evil']],
  ])('%s', async (_what, field) => {
    await answering(head([...OK, field], END_STREAM));
    await askBoth(({ outcome, text }) => {
      expect(outcome).toMatch(/^(?:200|502)$/);
      expect(text).not.toContain(EVIL);
    });
  });
});

const end = (socket: TLSSocket): void => void socket.end();

describe('a reply that breaks off never looks complete', () => {
  const begun = Buffer.concat([head(OK), data('part')]);
  const length = Buffer.concat([head([...OK, ['content-length', '9']]), data('part')]);
  const none = Buffer.alloc(0);
  const breaks: readonly (readonly [string, Buffer, (socket: TLSSocket) => void])[] = [
    ['its connection ends', begun, end],
    ['its connection ends inside a frame', Buffer.concat([begun, data('x'.repeat(100)).subarray(0, 50)]), end],
    ['its connection ends inside the head', head([...OK, ['x-a', 'b'.repeat(100)]]).subarray(0, 60), end],
    ['its connection ends inside the trailers', Buffer.concat([begun, frame(HEADERS, END_STREAM, 1, fields([['x-a', 'b']]))]), end], // prettier-ignore
    ['its connection ends before the content-length', length, end],
    ['its connection ends after an interim head', head([[':status', '103']]), end],
    ...[0, 1, 2, 7, 8, 11, 13].map((code) => [`it is reset with ${code}`, Buffer.concat([begun, reset(code)]), () => undefined] as const), // prettier-ignore
    ...[0, 2, 8].map((code) => [`it is reset with ${code} before its head`, reset(code), () => undefined] as const),
    ...[0, 2, 11].map((code) => [`a GOAWAY with ${code} below it`, Buffer.concat([begun, frame(GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(code)]))]), end] as const), // prettier-ignore
    ['it is shorter than its content-length', Buffer.concat([length, data('', END_STREAM)]), () => undefined],
    ['it is longer than its content-length', Buffer.concat([length, data('partpart', END_STREAM)]), () => undefined],
    ['it has a second head', Buffer.concat([begun, head([...OK, ['x-a', EVIL]])]), end],
    ['it has an interim head inside', Buffer.concat([begun, head([[':status', '103']])]), end],
    ['it has trailers with a status', Buffer.concat([begun, head([...OK, ['x-a', EVIL]], END_STREAM)]), end],
    ['it has trailers that do not end it', Buffer.concat([begun, head([['x-a', EVIL]])]), end],
    ['it has trailers of a connection', Buffer.concat([begun, head([['transfer-encoding', EVIL]], END_STREAM)]), end],
    ['data come for stream 0', Buffer.concat([begun, data(EVIL, 0, 0)]), end],
    ['data come for another stream', Buffer.concat([begun, data(EVIL, END_STREAM, 7)]), end],
    ['a request comes', Buffer.concat([begun, head(REQUEST, END_STREAM, 2)]), end],
    ['a push comes', Buffer.concat([begun, frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([uint32(2), fields(REQUEST)]))]), end], // prettier-ignore
    ['padding is longer than its data', Buffer.concat([begun, frame(DATA, PADDED | END_STREAM, 1, Buffer.of(9, 1))]), end], // prettier-ignore
    ['a frame is larger than was agreed', Buffer.concat([begun, data('x'.repeat(16_385), END_STREAM)]), end],
    ['an index is beyond the tables', Buffer.concat([begun, frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.of(0xff, 0x80, 0x7f))]), end], // prettier-ignore
    ['its window overflows', Buffer.concat([begun, frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff))]), end],
    ['a window is empty', Buffer.concat([begun, frame(WINDOW_UPDATE, 0, 0, uint32(0))]), end],
    ['a setting is illegal', Buffer.concat([begun, settings([5, 1])]), end],
    ['settings allow a push', Buffer.concat([begun, settings([2, 1])]), end],
    ['HTTP/1.1 comes', Buffer.concat([begun, Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')]), end],
    ['nothing but its connection comes', none, end],
  ];

  test.each(breaks)('%s', async (what, bytes, act) => {
    await answering(bytes, act);
    await askBoth(({ outcome, body, isWhole, text }) => {
      expect(text).not.toContain(EVIL);
      if (outcome === '502') return;
      expect([isWhole, outcome.startsWith('reset ') || what === 'it is reset with 0']).toEqual([false, true]);
      expect(body).toMatch(/^(?:part(?:part|x*))?$/);
    });
  });
});

describe('what belongs to a connection is not passed on', () => {
  const OF_CONNECTION: Readonly<Record<string, Buffer>> = {
    'an alternative service': frame(10, 0, 1, Buffer.concat([Buffer.of(0, 0), Buffer.from('h3="evil.test:443"')])),
    'an alternative service for an origin': frame(10, 0, 0, Buffer.concat([Buffer.of(0, 12), Buffer.from('https://evilh3=":443"')])), // prettier-ignore
    'an origin': frame(12, 0, 0, Buffer.concat([Buffer.of(0, 17), Buffer.from('https://evil.test')])),
    'an unknown frame': frame(250, 255, 1, Buffer.from(EVIL)),
    'a setting that is unknown': settings([0xf0, 1]),
    'a setting that refuses WebSockets': settings([8, 0]),
  };

  test.each(Object.keys(OF_CONNECTION))('%s', async (what) => {
    await answering(head(OK), OF_CONNECTION[what] ?? Buffer.alloc(0), data('done', END_STREAM));
    const session = await plane.openSession(HOST);
    const got: unknown[] = [];
    session.on('altsvc', (...told: unknown[]) => got.push(told));
    session.on('origin', (told: unknown) => got.push(told));
    expect(await ask(session)).toMatchObject({ outcome: '200', body: 'done', isWhole: true });
    expect([got, session.remoteSettings.enableConnectProtocol]).toEqual([[], false]);
    session.destroy();
  });
});

describe('an upstream that floods its connection stops only its own tunnel', () => {
  test.each<readonly [string, Buffer]>([
    ['pings', Buffer.concat(numbers(50_000).map(() => frame(PING, 0, 0, Buffer.alloc(8))))],
    ['settings', Buffer.concat(numbers(50_000).map(() => settings()))],
    ['empty data', Buffer.concat([head(OK), ...numbers(50_000).map(() => data(''))])],
    ['resets', Buffer.concat(numbers(20_000).map(() => reset(8)))],
    ['ends', Buffer.concat(numbers(5000).map(() => frame(GOAWAY, 0, 0, Buffer.concat([uint32(1), uint32(0)]))))],
    ['windows', Buffer.concat(numbers(50_000).map(() => frame(WINDOW_UPDATE, 0, 0, uint32(1))))],
  ])('%s', async (_what, bytes) => {
    plane.policy.use([bearerBinding(HOST)]);
    await answering(bytes, (socket) => void socket.end());
    const session = await plane.openSession(HOST);
    expect((await ask(session)).outcome).toMatch(/^(?:502|reset \d+)$/);
    session.destroy();
    await expectOthersServed();
    await expect.poll(() => plane.openTunnels()).toBe(0);
  });
});

test('an early reply that is followed by a reset without an error is whole, and its client may stop', async () => {
  await answering(Buffer.concat([head([[':status', '413']]), data('stop', END_STREAM), reset(0)]));
  for (const bindings of [[], [bearerBinding(HOST, { body: 'stream' })]]) {
    plane.policy.use(bindings);
    const session = await plane.openSession(HOST);
    const stream = session.request([':method', 'POST', ':scheme', 'https', ':authority', HOST, ':path', '/'], {
      endStream: false,
    });
    stream.write('part');
    expect(await read(stream)).toMatchObject({ outcome: '413', body: 'stop' });
    session.destroy();
  }
});

test('an early reply that its upstream reset without an error before it was read ends its upload too', async () => {
  const isReset = Promise.withResolvers<void>();
  await plane.frameUpstream(HOST, (socket) => {
    const got: Buffer[] = [];
    let isAnswered = false;
    socket.on('data', (piece: Buffer) => {
      got.push(piece);
      const bytes = Buffer.concat(got);
      if (bytes.includes(frame(PING, ACK, 0, PING_BYTES))) isReset.resolve();
      if (isAnswered || !bytes.includes(frame(HEADERS, END_HEADERS, 1).subarray(3))) return;
      isAnswered = true;
      const pieces = numbers(30).map(() => data('x'.repeat(16_384)));
      const ping = frame(PING, 0, 0, PING_BYTES);
      socket.write(Buffer.concat([head([[':status', '413']]), ...pieces, data('stop', END_STREAM), reset(0), ping]));
    });
    socket.write(Buffer.concat([settings([4, 0]), frame(SETTINGS, ACK, 0)]));
  });
  plane.policy.use([bearerBinding(HOST, { body: 'stream' })]);
  const session = await plane.openSession(HOST);
  const request = [':method', 'POST', ':scheme', 'https', ':authority', HOST, ':path', '/'];
  const stream = session.request(request, { endStream: false });
  stream.write('of which the upstream takes nothing');
  await isReset.promise;
  const { body, isWhole } = await read(stream);
  expect(isWhole).toBe(true);
  expect(body.length).toBe(30 * 16_384 + 'stop'.length);
  session.destroy();
});

const PING_BYTES = Buffer.from('8 octets');

test('an upstream that gives no window is given up with its client', async () => {
  const got: Buffer[] = [];
  await plane.frameUpstream(HOST, (socket) => {
    socket.on('data', (piece: Buffer) => got.push(piece));
    socket.write(Buffer.concat([settings([4, 0]), frame(SETTINGS, ACK, 0)]));
  });
  plane.policy.use([bearerBinding(HOST, { body: 'stream' })]);
  const session = await plane.openSession(HOST);
  const stream = session.request([':method', 'POST', ':scheme', 'https', ':authority', HOST, ':path', '/'], {
    endStream: false,
  });
  const answered = read(stream);
  stream.write('the body');
  await expect.poll(() => Buffer.concat(got).includes(frame(HEADERS, END_HEADERS, 1).subarray(3))).toBe(true);
  expect(Buffer.concat(got).includes('the body')).toBe(false);
  stream.close(constants.NGHTTP2_CANCEL);
  await answered;
  await expect.poll(() => Buffer.concat(got).includes(reset(8))).toBe(true);
  session.destroy();
});
