import type { ClientHttp2Session, ClientHttp2Stream, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { fieldOf } from '../../shared/net/http/http2_head.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { startDataPlane } from '../testing/data_plane.ts';

/** What an upstream over HTTP/2 decides: how many streams it takes at once, which it refuses, and when its session ends. */

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const REF = { owner: 'personal', path: 'user/demo' } as const;
const { NGHTTP2_REFUSED_STREAM: REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM: CALM } = constants;

let plane: DataPlane;
/** The streams that the upstream received, and their paths. */
let streams: ServerHttp2Stream[];
let paths: string[];
let received: readonly string[];
let upstream: ServerHttp2Session | null;

async function startPlane(connectTimeoutSeconds: number): Promise<void> {
  plane = await startDataPlane({ connectTimeoutSeconds });
  plane.credentials.set(REF, SECRET);
  plane.policy.use([bearerBinding(HOST)]);
}

beforeEach(async () => {
  await startPlane(60);
  streams = [];
  paths = [];
  upstream = null;
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** An upstream that records each request; `answer` decides what it gets, by default nothing. */
async function serve(answer: (stream: ServerHttp2Stream, path: string) => void = () => undefined): Promise<void> {
  await plane.streamUpstream(HOST, (stream, fields, session) => {
    const path = fieldOf(fields, ':path') ?? '';
    upstream = session;
    streams.push(stream);
    paths.push(path);
    received = fields;
    answer(stream, path);
  });
}

function reply(stream: ServerHttp2Stream | undefined, body = 'hi'): void {
  stream?.respond({ ':status': 200 });
  stream?.end(body);
}

function fieldsOf(method: string, path: string): string[] {
  return [':method', method, ':scheme', 'https', ':authority', HOST, ':path', path];
}

/** Sends a request without a body; resolves with the body of its reply, or with `reset` and the code. */
function ask(session: ClientHttp2Session, path: string, method = 'GET'): Promise<string> {
  return readReply(session.request(fieldsOf(method, path), { endStream: true }));
}

function readReply(stream: ClientHttp2Stream): Promise<string> {
  let body = '';
  stream.on('data', (data: Buffer) => (body += data.toString('latin1')));
  stream.on('error', () => undefined);
  return new Promise((resolve) => {
    stream.on('close', () => resolve(stream.rstCode === 0 ? body : `reset ${stream.rstCode}`));
  });
}

/** Tells the proxy how many streams the upstream takes, and waits until it knows. */
function limitStreams(maxConcurrentStreams: number): Promise<void> {
  return new Promise((resolve) => {
    upstream?.settings({ maxConcurrentStreams }, () => resolve());
  });
}

/** A tunnel whose upstream takes one stream at a time, which `/first` has. */
async function fillUpstream(): Promise<{ readonly session: ClientHttp2Session; readonly first: Promise<string> }> {
  const session = await plane.openSession(HOST);
  await expectServed(session);
  await limitStreams(1);
  const first = ask(session, '/first');
  await expect.poll(() => paths).toContain('/first');
  return { session, first };
}

/** The upstream answers /served at once. */
async function expectServed(session: ClientHttp2Session): Promise<void> {
  const served = ask(session, '/served');
  await expect.poll(() => paths).toContain('/served');
  reply(streams.at(-1));
  expect(await served).toBe('hi');
}

/** Requests that wait have got their credential, as those that {@link fillUpstream} sent have. */
async function expectWaiting(requests = 1): Promise<void> {
  await expect.poll(() => plane.credentials.asked.length).toBe(2 + requests);
  expect(paths).not.toContain('/second');
}

function goAway(stream: ServerHttp2Stream, code: number, lastStreamId: number): void {
  stream.session?.goaway(code, lastStreamId);
}

describe('a request that waits for a stream', () => {
  const otherSecret = { ...bearerBinding(HOST), credential: { owner: 'personal', path: 'user/other' } } as const;
  const changes: readonly [string, () => void, string][] = [
    ['its binding is removed', () => plane.policy.use([]), 'credential_unavailable'],
    [
      'its effect is narrowed',
      () => plane.policy.use([bearerBinding(HOST, { effect: 'read' })]),
      'credential_unavailable',
    ],
    ['it names another secret', () => plane.policy.use([otherSecret]), 'credential_unavailable'],
    ['the sidecar is revoked', () => plane.policy.refuse('control_plane_unavailable'), 'control_plane_unavailable'],
  ];

  test.each(changes)('is not sent once %s', async (_what, change, expected) => {
    plane.policy.use([bearerBinding(HOST, { effect: 'write' })]);
    await serve();
    const { session, first } = await fillUpstream();
    const second = ask(session, '/second');
    await expectWaiting();
    change();
    reply(streams.at(-1));
    await first;
    expect(await second).toContain(expected);
    expect(paths).not.toContain('/second');
  });

  test('is sent when one is free, each in its turn', async () => {
    await serve((stream, path) => {
      if (path.startsWith('/later')) reply(stream, path);
    });
    const { session, first } = await fillUpstream();
    const later = ['/later/1', '/later/2', '/later/3'].map((path) => ask(session, path));
    await expectWaiting(later.length);
    reply(streams.at(-1));
    expect([await first, ...(await Promise.all(later))]).toEqual(['hi', '/later/1', '/later/2', '/later/3']);
  });

  test('is sent when the upstream takes more', async () => {
    await serve();
    const { session } = await fillUpstream();
    void ask(session, '/second');
    await expectWaiting();
    await limitStreams(2);
    await expect.poll(() => paths).toContain('/second');
  });

  test('is refused once it has waited too long, and recorded', async () => {
    await plane.stop();
    await startPlane(1);
    await serve();
    const { session } = await fillUpstream();
    expect(await ask(session, '/second')).toContain('upstream_unreachable');
    expect(paths).not.toContain('/second');
    expect(plane.audit.events.at(-1)?.data['svc.proxy.reason']).toBe('upstream_unreachable');
  });

  test('is dropped with its client, and its place is free', async () => {
    await serve();
    const { session, first } = await fillUpstream();
    const gone = session.request(fieldsOf('GET', '/second'));
    void readReply(gone);
    await expectWaiting();
    gone.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => plane.audit.events.map(({ data }) => data['svc.proxy.reason'])).toContain('client_gone');
    reply(streams.at(-1));
    await first;
    expect(paths).not.toContain('/second');
  });

  test('is sent on another session if its own has ended, also a POST', async () => {
    await serve();
    const { session } = await fillUpstream();
    const second = ask(session, '/second', 'POST');
    await expectWaiting();
    upstream?.destroy();
    await expect.poll(() => paths).toContain('/second');
    reply(streams.at(-1));
    expect(await second).toBe('hi');
  });
});

test('a head that waits for an upstream that does not read is not sent once its binding is removed', async () => {
  const binding = bearerBinding(HOST, { body: 'stream', effect: 'write' });
  plane.policy.use([binding]);
  await serve((stream) => stream.resume());
  const dials = await plane.hold(HOST);
  dials.letThrough();
  const session = await plane.openSession(HOST);
  await expectServed(session);
  await new Promise<void>((resolve) => upstream?.settings({ initialWindowSize: 2 ** 30 }, () => resolve()));
  upstream?.setLocalWindowSize(2 ** 30);
  dials.stopReading();
  const flood = session.request(fieldsOf('POST', '/flood'), { endStream: false });
  flood.on('error', () => undefined);
  const chunk = Buffer.alloc(65_536);
  const more = (): void => void flood.write(chunk, () => setImmediate(more));
  more();
  // What the proxy takes from the client shrinks this window, and what it has passed on opens it again.
  const isStill = (): Promise<boolean> => stillAfter(1_000, () => session.state.remoteWindowSize);
  await expect.poll(isStill).toBe(true);
  const second = ask(session, '/second');
  await expectWaiting();
  plane.policy.use([]);
  expect(await second).toContain('credential_unavailable');
  plane.policy.use([binding]);
  void ask(session, '/third');
  dials.readAgain();
  await expect.poll(() => paths).toContain('/third');
  expect(paths).not.toContain('/second');
});

async function stillAfter(ms: number, look: () => unknown): Promise<boolean> {
  const before = look();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return look() === before;
}

describe('a request that was not answered', () => {
  const losses: readonly [string, string, (stream: ServerHttp2Stream) => void, number][] = [
    ['DELETE that was reset', 'DELETE', (stream) => stream.close(CALM), 1],
    ['POST that was reset', 'POST', (stream) => stream.close(CALM), 1],
    ['DELETE that was refused unread', 'DELETE', (stream) => stream.close(REFUSED_STREAM), 2],
    ['POST that was refused unread', 'POST', (stream) => stream.close(REFUSED_STREAM), 2],
    ['DELETE whose connection was lost', 'DELETE', (stream) => stream.session?.destroy(), 2],
    ['POST whose connection was lost', 'POST', (stream) => stream.session?.destroy(), 1],
    ['DELETE below the last stream of an error', 'DELETE', (stream) => goAway(stream, CALM, 99), 1],
    ['POST below the last stream of a refusal', 'POST', (stream) => goAway(stream, REFUSED_STREAM, 99), 1],
    ['POST above the last stream of an error', 'POST', (stream) => goAway(stream, CALM, 1), 2],
    ['POST above the last stream of a graceful end', 'POST', (stream) => goAway(stream, 0, 1), 2],
  ];

  test.each(losses)('a %s', async (_what, method, lose, times) => {
    await serve((stream, path) => {
      if (path !== '/lost') return;
      if (paths.filter((one) => one === path).length === 1) setTimeout(() => lose(stream), 20);
      else reply(stream);
    });
    const session = await plane.openSession(HOST);
    await expectServed(session);
    const got = await ask(session, '/lost', method);
    expect(paths.filter((path) => path === '/lost')).toHaveLength(times);
    expect(got).toContain(times === 2 ? 'hi' : 'upstream_unreachable');
    expect(plane.audit.events).toHaveLength(2);
  });
});

test('a request without an `:authority` goes out without one', async () => {
  plane.policy.use([]);
  await serve((stream) => reply(stream));
  const session = await plane.openSession(HOST);
  const fields = [':method', 'GET', ':scheme', 'https', ':path', '/', 'x-a', 'b', 'host', HOST];
  expect(await readReply(session.request(Object.assign([...fields], { host: HOST }), { endStream: true }))).toBe('hi');
  expect(received).toEqual(fields);
});

test('trailers for the proxy are not sent on', async () => {
  plane.policy.use([]);
  let trailers: readonly string[] = [];
  await serve((stream) => {
    stream.on('trailers', (_object, _flags, list: readonly string[]) => (trailers = list));
    stream.on('end', () => reply(stream));
    stream.resume();
  });
  const session = await plane.openSession(HOST);
  const stream = session.request(fieldsOf('POST', '/'), { endStream: false, waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-a': '1', 'proxy-authorization': 'Basic mine' }));
  stream.end('body');
  expect(await readReply(stream)).toBe('hi');
  expect(trailers).toEqual(['x-a', '1']);
});

test('a reply that has no body frees its stream while the client still sends', async () => {
  plane.policy.use([]);
  await serve((stream) => stream.respond({ ':status': 205 }, { endStream: true }));
  const session = await plane.openSession(HOST);
  const stream = session.request(fieldsOf('POST', '/'), { endStream: false });
  stream.write('part');
  expect(await readReply(stream)).toBe('');
  await expect.poll(() => plane.openTunnels()).toBe(1);
});

test('an upstream that was dialled is recorded, also if no request followed', async () => {
  await serve();
  const socket = await plane.openTls(HOST, ['h2', 'http/1.1']);
  // The first bytes of HTTP/2, so that both handshakes are over; a request does not follow.
  await new Promise((resolve) => socket.once('data', resolve));
  expect(plane.audit.events).toEqual([]);
  socket.destroy();
  await expect.poll(() => plane.audit.events.length).toBe(1);
  expect(plane.audit.events[0]).toMatchObject({
    type: 'sandbox.proxy.rejected',
    data: { 'svc.proxy.upstream.host': HOST, 'svc.proxy.reason': 'client_gone' },
  });
});

test('a large body that its upstream does not read keeps no other reply away', async () => {
  await serve((stream, path) => {
    if (path === '/large') stream.pause();
    else reply(stream);
  });
  const session = await plane.openSession(HOST);
  const large = session.request(fieldsOf('POST', '/large'), { endStream: false });
  large.on('error', () => undefined);
  large.end(Buffer.alloc(2 ** 24));
  await expect.poll(() => paths).toContain('/large');
  for (const _ of [1, 2, 3]) expect(await ask(session, '/small')).toBe('hi');
  large.close(constants.NGHTTP2_CANCEL);
});

test('a body that its upstream does not read is dropped once the client has the whole reply', async () => {
  const codes: (number | undefined)[] = [];
  await serve((stream, path) => {
    if (path !== '/large') return reply(stream);
    stream.pause();
    stream.on('error', () => undefined);
    stream.once('close', () => codes.push(stream.rstCode));
    stream.respond({ ':status': 413 }, { endStream: true });
  });
  const session = await plane.openSession(HOST);
  for (const _ of [1, 2]) {
    const large = session.request(fieldsOf('POST', '/large'), { endStream: false });
    const answered = readReply(large);
    large.end(Buffer.alloc(2 ** 20));
    expect(await answered).toBe('');
  }
  await expect.poll(() => codes).toEqual([constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL]);
  expect(await ask(session, '/small')).toBe('hi');
});
