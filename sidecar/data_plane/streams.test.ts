import type { ClientHttp2Session, ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { constants, sensitiveHeaders } from 'node:http2';
import { createServer } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { listen } from '../../machine/connection/listen.ts';
import { CONNECTION_WINDOW_BYTES } from '../../machine/connection/stream_limits.ts';
import type { MarkedHeaders } from '../../machine/connection/stream_connection.ts';
import type { DataPlane, StreamHandler } from '../testing/data_plane.ts';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { fieldOf } from '../../shared/net/http/http2_head.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';
import { MOST_UNSENT_STREAMS } from '../tunnel/discard_unsent.ts';

/** What only HTTP/2 has; over_http2.test.ts has what both versions have in common. */

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const MASK = '*'.repeat(SECRET.length);
const { NGHTTP2_CANCEL: CANCEL, NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR } = constants;

let plane: DataPlane;
/** The fields of each request that the upstream received. */
let seen: (readonly string[])[];

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  seen = [];
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** A reply as the client received it. `code` is that of a reset; 0 if the stream ended. */
interface Got {
  readonly interim: (readonly string[])[];
  fields: readonly string[];
  body: string;
  trailers: readonly string[];
  code: number;
  /** The stream was ended, and not only reset. */
  isWhole: boolean;
}

const OPTIONS = { waitForTrailers: true, sendDate: false };

function fieldsOf(method: string, more: readonly string[] = [], path = '/a?b=c'): string[] {
  return [':method', method, ':scheme', 'https', ':authority', HOST, ':path', path, ...more];
}

const GET = fieldsOf('GET');

/** Sends a request and reads its reply to the end. */
function ask(session: ClientHttp2Session, fields: string[], body?: string | Buffer): Promise<Got> {
  const stream = session.request(fields, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return readReply(stream);
}

function readReply(stream: ClientHttp2Stream): Promise<Got> {
  const got: Got = { interim: [], fields: [], body: '', trailers: [], code: 0, isWhole: false };
  return new Promise((resolve) => {
    stream.on('headers', (_object, _flags, list: string[]) => got.interim.push(list));
    stream.on('response', (_object, _flags, list: string[]) => (got.fields = list));
    stream.on('trailers', (_object, _flags, list: string[]) => (got.trailers = list));
    stream.on('data', (data: Buffer) => (got.body += data.toString('latin1')));
    stream.on('end', () => (got.isWhole = !stream.closed));
    stream.on('error', () => undefined);
    stream.on('close', () => resolve(Object.assign(got, { code: stream.rstCode ?? 0 })));
  });
}

/** An upstream that records each request and answers it. */
function serve(answer: (stream: ServerHttp2Stream, path: string) => void, versions?: readonly string[]): Promise<void> {
  const handler: StreamHandler = (stream, fields) => {
    seen.push(fields);
    answer(stream, fields[fields.indexOf(':path') + 1] ?? '');
  };
  return plane.streamUpstream(HOST, handler, versions);
}

function reply(stream: ServerHttp2Stream, body: string | Buffer, more: readonly string[] = []): void {
  stream.respond([':status', '200', ...more], { sendDate: false } as object);
  stream.end(body);
}

const events = (): string[] => plane.audit.events.map(({ type, data }) => data['svc.proxy.reason'] ?? type);

describe('the version is the one that the upstream chooses', () => {
  test.each([
    [['h2', 'http/1.1'], ['h2', 'http/1.1'], 'h2'],
    [['http/1.1', 'h2'], ['h2', 'http/1.1'], 'h2'],
    [['h2', 'http/1.1'], ['http/1.1'], 'http/1.1'],
    [['http/1.1'], ['h2', 'http/1.1'], 'http/1.1'],
    [['h2'], ['h2'], 'h2'],
  ])('a client offers %j, the upstream speaks %j: %s', async (offered, spoken, version) => {
    await serve((stream) => reply(stream, 'hi'), spoken);
    const socket = await plane.openTls(HOST, offered);
    expect(socket.alpnProtocol).toBe(version);
    socket.destroy();
  });

  test('an upstream that chooses none speaks HTTP/1.1', async () => {
    await plane.upstream(
      HOST,
      createAnswering(() => 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'),
    );
    const socket = await plane.openTls(HOST, ['h2', 'http/1.1']);
    expect(socket.alpnProtocol).toBe('http/1.1');
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    expect(await readUntil(socket, (got) => got.endsWith('hi'))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('a client of HTTP/2 alone gets 502 in its tunnel if the upstream does not speak it', async () => {
    await plane.upstream(
      HOST,
      createAnswering(() => ''),
    );
    const session = await plane.openSession(HOST);
    expect((await ask(session, GET)).body).toContain('upstream_tls_failed');
  });

  test('an upstream that cannot be reached is a 502 in the tunnel, in either version', async () => {
    plane.pin(HOST, 1);
    const session = await plane.openSession(HOST);
    expect((await ask(session, GET)).body).toContain('upstream_unreachable');
    const socket = await plane.openTls(HOST, ['h2', 'http/1.1']);
    expect(socket.alpnProtocol).toBe('http/1.1');
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    expect(await readUntil(socket, (got) => got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 502 /);
    expect(events()).toEqual(['upstream_unreachable', 'upstream_unreachable']);
  });

  test('a client whose server name is another host gets no HTTP/2 beside HTTP/1.1', async () => {
    await serve((stream) => reply(stream, 'hi'), ['h2', 'http/1.1']);
    const socket = await plane.openTls(HOST, ['h2', 'http/1.1'], 'other.example.test');
    expect(socket.alpnProtocol).toBe('http/1.1');
    socket.destroy();
  });

  test('nothing is dialled while no policy is in force, nor for a private address that is not bound', async () => {
    let dials = 0;
    const server = createServer((socket) => {
      dials += 1;
      socket.destroy();
    });
    const port = await listen(server, 0, '127.0.0.1');
    for (const host of [HOST, '127.0.0.1']) plane.pin(host, port);
    plane.policy.refuse('snapshot_expired');
    expect((await ask(await plane.openSession(HOST), GET)).body).toContain('snapshot_expired');
    plane.policy.use([]);
    const session = await plane.openSession('127.0.0.1', { servername: '' });
    const fields = GET.map((value) => (value === HOST ? '127.0.0.1' : value));
    expect((await ask(session, fields)).body).toContain('passthrough_target_not_allowed');
    expect(dials).toBe(0);
    plane.policy.use([bearerBinding('127.0.0.1')]);
    expect((await ask(await plane.openSession('127.0.0.1', { servername: '' }), fields)).body).toContain('upstream_');
    expect(dials).toBeGreaterThan(0);
    server.close();
  });
});

test('passes a request and its reply exactly: order, duplicates, interim replies and trailers', async () => {
  await serve((stream) => {
    stream.additionalHeaders({ ':status': 103, link: ['</a>', '</b>'] });
    stream.respond([':status', '200', 'x-a', '1', 'b', '\xff', 'x-a', '3', 'date', 'a', 'date', 'b'], OPTIONS);
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-t': '1' }));
    stream.end('hello');
  });
  const session = await plane.openSession(HOST);
  const sent = fieldsOf('M-SEARCH', ['x-b', '1', 'a', '\xa0', 'x-b', '3', 'te', 'trailers', 'host', HOST]);
  const got = await ask(session, sent);
  expect(seen).toEqual([sent]);
  expect(got).toEqual({
    interim: [[':status', '103', 'link', '</a>', 'link', '</b>']],
    fields: [':status', '200', 'x-a', '1', 'b', '\xff', 'x-a', '3', 'date', 'a', 'date', 'b'],
    body: 'hello',
    trailers: ['x-t', '1'],
    code: 0,
    isWhole: true,
  });
});

function markedWith(names: readonly string[]): object {
  return { [sensitiveHeaders]: [...names] };
}

test('what either side marks as never indexed stays so, in every part of a message', async () => {
  const toUpstream: unknown[] = [];
  await plane.streamUpstream(HOST, (stream, _fields, _session, headers) => {
    toUpstream.push(headers[sensitiveHeaders]);
    stream.on('trailers', (trailers: MarkedHeaders) => toUpstream.push(trailers[sensitiveHeaders]));
    stream.additionalHeaders({ ':status': 103, 'x-a': '1', 'x-b': '2', ...markedWith(['x-a']) });
    stream.respond(Object.assign([':status', '200', 'x-c', '1', 'x-d', '2'], markedWith(['x-c'])), OPTIONS);
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-e': '1', 'x-f': '2', ...markedWith(['x-e']) }));
    stream.resume();
    stream.on('end', () => stream.end('hello'));
  });
  const session = await plane.openSession(HOST);
  for (const bindings of [[], [bearerBinding(HOST, { body: 'stream' })]]) {
    plane.policy.use(bindings);
    const stream = session.request(Object.assign(fieldsOf('POST', ['x-g', '1', 'x-h', '2']), markedWith(['x-g'])), {
      endStream: false,
      waitForTrailers: true,
    });
    const toClient: unknown[] = [];
    for (const event of ['headers', 'response', 'trailers']) {
      stream.on(event, (headers: MarkedHeaders) => toClient.push(headers[sensitiveHeaders]));
    }
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-i': '1', 'x-j': '2', ...markedWith(['x-i']) }));
    stream.end('body');
    await readReply(stream);
    expect(toClient).toEqual([['x-a'], ['x-c'], ['x-e']]);
  }
  expect(toUpstream).toEqual([['x-g'], ['x-i'], ['x-g', 'authorization'], ['x-i']]);
});

test('passes the body and the trailers of a request, and keeps a reply that is all head', async () => {
  const got = Promise.withResolvers<unknown>();
  await serve((stream) => {
    let bytes = 0;
    stream.on('data', (data: Buffer) => (bytes += data.length));
    stream.on('trailers', (_object, _flags, list: readonly string[]) => got.resolve([bytes, list]));
    stream.on('end', () => stream.respond([':status', '200', 'grpc-status', '5'], { ...OPTIONS, endStream: true }));
  });
  const session = await plane.openSession(HOST);
  const stream = session.request(fieldsOf('POST'), { endStream: false, waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': 'abc' }));
  let flags = 0;
  stream.on('response', (_object, received: number) => (flags = received));
  stream.end(Buffer.alloc(3_000_000));
  expect(await readReply(stream)).toMatchObject({ fields: [':status', '200', 'grpc-status', '5'], body: '', code: 0 });
  expect(await got.promise).toEqual([3_000_000, ['x-sum', 'abc']]);
  expect(flags & constants.NGHTTP2_FLAG_END_STREAM).toBe(1);
});

describe('with a binding', () => {
  beforeEach(() => plane.policy.use([bearerBinding(HOST)]));

  test('the credential is written last, never indexed, and masked in head, body and trailers', async () => {
    let marked: readonly string[] | undefined;
    await plane.streamUpstream(HOST, (stream, fields, _session, headers) => {
      seen.push(fields);
      marked = headers[sensitiveHeaders];
      stream.additionalHeaders({ ':status': 103, link: `<${SECRET}>` });
      stream.respond([':status', '200', 'x-echo', SECRET, 'set-cookie', 'a=b'], OPTIONS);
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-t': SECRET, 'set-cookie': 'c=d' }));
      stream.end(`you sent ${SECRET}`);
    });
    const session = await plane.openSession(HOST);
    const lines = [
      'authorization',
      'Bearer mine',
      'x-kept',
      '1',
      'te',
      'trailers',
      'accept-encoding',
      'zip, gzip',
      'host',
      HOST,
    ];
    const got = await ask(session, fieldsOf('GET', lines));
    const sent = ['x-kept', '1', 'te', 'trailers', 'accept-encoding', 'gzip', 'authorization', `Bearer ${SECRET}`];
    expect(seen).toEqual([fieldsOf('GET', sent)]);
    expect(marked).toEqual(['authorization']);
    expect(got).toEqual({
      interim: [[':status', '103', 'link', `<${MASK}>`]],
      fields: [':status', '200', 'x-echo', MASK],
      body: `you sent ${MASK}`,
      trailers: ['x-t', MASK],
      code: 0,
      isWhole: true,
    });
    expect(events()).toEqual(['sandbox.proxy.binding_injected']);
  });

  test('a credential in the target is never indexed either', async () => {
    plane.policy.use([bearerBinding(HOST, { injection: { scheme: 'query-param', queryParam: 'key' } })]);
    let marked: readonly string[] | undefined;
    await plane.streamUpstream(HOST, (stream, fields, _session, headers) => {
      seen.push(fields);
      marked = headers[sensitiveHeaders];
      reply(stream, 'hi');
    });
    await ask(await plane.openSession(HOST), GET);
    expect(seen).toEqual([fieldsOf('GET', [], `/a?b=c&key=${SECRET}`)]);
    expect(marked).toEqual([':path']);
  });

  test.each([
    ['gzip', gzipSync(`a ${SECRET} b`)],
    ['br', brotliCompressSync(`a ${SECRET} b`)],
  ])('a body that is compressed with %s is sent decoded and masked', async (coding, bytes) => {
    await serve((stream) => reply(stream, bytes, ['content-encoding', coding, 'content-length', String(bytes.length)]));
    const got = await ask(await plane.openSession(HOST), GET);
    expect([got.fields, got.body]).toEqual([[':status', '200'], `a ${MASK} b`]);
  });

  test('a body is sent with its length, and one over the limit is refused before it is read', async () => {
    await serve((stream) => {
      let body = '';
      stream.on('data', (data: Buffer) => (body += data.toString('latin1')));
      stream.on('end', () => reply(stream, body));
    });
    const session = await plane.openSession(HOST);
    expect((await ask(session, fieldsOf('POST'), 'payload')).body).toBe('payload');
    const large = session.request(fieldsOf('POST', ['content-length', String(2 ** 40)]), { endStream: false });
    large.write('x');
    expect((await readReply(large)).fields[1]).toBe('413');
    expect(plane.budget.heldBytes).toBe(0);
  });

  test('a refused request is answered, and its client may send the rest before it reads that', async () => {
    plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
    await serve((stream) => reply(stream, 'hi'));
    const session = await plane.openSession(HOST);
    const stream = session.request(fieldsOf('POST'), { endStream: false });
    const replied = readReply(stream);
    const piece = Buffer.alloc(CONNECTION_WINDOW_BYTES / 16);
    for (let sent = 0; sent < 3 * CONNECTION_WINDOW_BYTES; sent += piece.length) {
      await new Promise((resolve) => stream.write(piece, resolve));
    }
    stream.end();
    const got = await replied;
    expect([got.fields[1], got.code, got.isWhole]).toEqual(['403', 0, true]);
    expect((await ask(session, GET)).body).toBe('hi');
    expect(seen).toHaveLength(1);
  });

  test('some refused requests may go on, others of their connection are told to stop, and all others are served', async () => {
    plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
    await serve((stream) => reply(stream, 'hi'));
    const session = await plane.openSession(HOST);
    const refused = Array.from({ length: MOST_UNSENT_STREAMS }, async () => {
      const stream = session.request(fieldsOf('POST'), { endStream: false });
      await new Promise((resolve) => stream.resume().once('end', resolve));
      return stream;
    });
    const unsent = await Promise.all(refused);
    for (const method of ['POST', 'HEAD']) {
      const path = fieldsOf(method).map((value) =>
        value === HOST && method === 'HEAD' ? 'other.example.test' : value,
      );
      const stopped = session.request(path, { endStream: false });
      if (method === 'POST') stopped.write(Buffer.alloc(1_000_000));
      const got = await readReply(stopped);
      expect([got.fields[1], got.code]).toEqual([method === 'POST' ? '403' : '421', 0]);
    }
    expect((await ask(session, GET)).body).toBe('hi');
    expect(unsent.map((stream) => stream.closed)).not.toContain(true);
    for (const stream of unsent) stream.end();
    await Promise.all(
      unsent.map(async (stream) => stream.closed || new Promise((resolve) => stream.once('close', resolve))),
    );
    const next = session.request(fieldsOf('POST'), { endStream: false });
    await new Promise((resolve) => next.resume().once('end', resolve));
    expect(next.closed).toBe(false);
  });

  test.each([
    ['application/grpc+proto', ['200', 'application/grpc+proto', '7', 'effect_not_allowed'], ''],
    ['application/json', ['403', 'application/json', undefined, undefined], 'effect_not_allowed'],
  ])('a refused call of %s gets its code where its client reads it', async (type, expected, inBody) => {
    plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
    await serve((stream) => reply(stream, 'hi'));
    const stream = (await plane.openSession(HOST)).request(fieldsOf('POST', ['content-type', type]), {
      endStream: false,
    });
    stream.end('an open call');
    const { fields, body, code } = await readReply(stream);
    const [status, got, grpcStatus, message] = [':status', 'content-type', 'grpc-status', 'grpc-message'].map((name) =>
      fieldOf(fields, name),
    );
    expect([status, got, grpcStatus, message?.split(':')[0], code]).toEqual([...expected, 0]);
    expect(body).toContain(inBody);
    expect([seen, events()]).toEqual([[], ['effect_not_allowed']]);
  });

  test('each message of a call of gRPC is passed on when it arrives', async () => {
    plane.policy.use([bearerBinding(HOST, { body: 'stream' })]);
    await serve((stream) => {
      stream.respond([':status', '200', 'content-type', 'application/grpc'], OPTIONS);
      stream.on('data', (data: Buffer) => stream.write(data));
    });
    const stream = (await plane.openSession(HOST)).request(fieldsOf('POST', ['content-type', 'application/grpc']), {
      endStream: false,
    });
    let got = '';
    stream.on('error', () => undefined);
    stream.on('data', (data: Buffer) => (got += data.toString('latin1')));
    for (const text of ['one', 'two', 'three']) {
      got = '';
      stream.write(Buffer.concat([Buffer.of(0, 0, 0, 0, text.length), Buffer.from(text)]));
      await expect.poll(() => got.slice(5)).toBe(text);
    }
    stream.close(CANCEL);
  });

  test('a call of gRPC is the operation of its path, and a decision is told as its status', async () => {
    const create = sampleOperation({
      name: 'create-item',
      method: 'POST',
      path: '/acme.v1.Items/Create',
      effect: 'write',
      approval: 'required',
      inputs: [],
    });
    plane.policy.use([], [sampleConnector([create], { hosts: [HOST] })]);
    plane.credentials.set({ owner: 'personal', path: 'connectors/acme/items' }, SECRET);
    await serve((stream) => {
      stream.resume();
      stream.on('end', () => reply(stream, 'created'));
    });
    const session = await plane.openSession(HOST);
    const call = (path: string): Promise<Got> =>
      ask(session, fieldsOf('POST', ['content-type', 'application/grpc'], path), 'message');
    expect((await call('/acme.v1.Items/Create')).body).toBe('created');
    plane.approvals.decision = 'approval_denied';
    const denied = await call('/acme.v1.Items/Create');
    expect([fieldOf(denied.fields, 'grpc-status'), fieldOf(denied.fields, 'grpc-message')?.split(':')[0]]).toEqual([
      '7',
      'approval_denied',
    ]);
    expect((await call('/acme.v1.Items/List')).body).toBe('created');
    expect(seen.map((fields) => fieldOf(fields, 'authorization'))).toEqual([`Bearer ${SECRET}`, undefined]);
    expect(plane.audit.events.map(({ data }) => data['svc.connector.operation'])).toEqual([
      'create-item',
      'create-item',
      undefined,
    ]);
  });

  test('messages of gRPC are asked for uncompressed where they are searched', async () => {
    await serve((stream) => reply(stream, 'hi'));
    const session = await plane.openSession(HOST);
    for (const bindings of [[], [bearerBinding(HOST)]]) {
      plane.policy.use(bindings);
      await ask(session, fieldsOf('POST', ['grpc-accept-encoding', 'identity,deflate,gzip']), 'x');
    }
    expect(seen.map((fields) => fieldOf(fields, 'grpc-accept-encoding'))).toEqual([
      'identity,deflate,gzip',
      'identity',
    ]);
  });

  test('each lane has its own session, and each credential too', async () => {
    const sessions = new Set<unknown>();
    await plane.streamUpstream(HOST, (stream, _fields, session) => {
      sessions.add(session);
      reply(stream, 'hi');
    });
    const session = await plane.openSession(HOST);
    for (const bindings of [[], [bearerBinding(HOST)], [], [bearerBinding(HOST)]]) {
      plane.policy.use(bindings);
      expect((await ask(session, GET)).body).toBe('hi');
    }
    expect(sessions.size).toBe(2);
    plane.credentials.set({ owner: 'personal', path: 'user/demo' }, `${SECRET}-next`);
    await ask(session, GET);
    expect(sessions.size).toBe(3);
  });

  test('requests that arrive together share the session of their lane', async () => {
    const sessions = new Set<unknown>();
    await plane.streamUpstream(HOST, (stream, _fields, session) => {
      sessions.add(session);
      reply(stream, 'hi');
    });
    const session = await plane.openSession(HOST);
    plane.policy.use([]);
    await ask(session, GET);
    plane.policy.use([bearerBinding(HOST)]);
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(session, GET)));
    expect(all.every(({ body }) => body === 'hi')).toBe(true);
    expect(sessions.size).toBe(2);
  });

  test('a binding that is removed while its lane is dialled sends nothing', async () => {
    await serve((stream) => reply(stream, 'hi'));
    plane.policy.use([]);
    const session = await plane.openSession(HOST);
    await ask(session, GET);
    const dials = await plane.hold(HOST);
    plane.policy.use([bearerBinding(HOST)]);
    const asked = ask(session, GET);
    await dials.reached;
    plane.policy.use([]);
    dials.letThrough();
    expect((await asked).body).toContain('credential_unavailable');
    expect(seen).toHaveLength(1);
  });

  test('a stream for another host of the same certificate is 421', async () => {
    await serve((stream) => reply(stream, 'hi'));
    const session = await plane.openSession(HOST);
    const other = GET.map((value) => (value === HOST ? 'other.example.test' : value));
    expect((await ask(session, other)).fields[1]).toBe('421');
    expect((await ask(session, fieldsOf('GET', ['host', 'other.example.test']))).fields[1]).toBe('400');
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
  });
});

test('requests at once count as tunnels of their session', async () => {
  await plane.stop();
  plane = await startDataPlane({ maxTunnelsPerSession: 3 });
  const waiting: ServerHttp2Stream[] = [];
  await serve((stream) => void waiting.push(stream));
  const session = await plane.openSession(HOST);
  const asked = Array.from({ length: 4 }, () => ask(session, GET));
  expect((await asked[3])?.fields[1]).toBe('429');
  await expect.poll(() => waiting.length).toBe(3);
  for (const stream of waiting) reply(stream, 'hi');
  expect((await Promise.all(asked.slice(0, 3))).map(({ body }) => body)).toEqual(['hi', 'hi', 'hi']);
  expect(events().filter((event) => event === 'too_many_tunnels')).toHaveLength(1);
  await expect.poll(() => plane.openTunnels()).toBe(1);
});

describe('a stream that does not end', () => {
  test.each([0, INTERNAL_ERROR, CANCEL])('a reply cut off with code %i never looks complete', async (code) => {
    await serve((stream) => {
      stream.respond([':status', '200'], OPTIONS);
      stream.write('part', () => setImmediate(() => stream.close(code)));
    });
    const session = await plane.openSession(HOST);
    for (const bindings of [[], [bearerBinding(HOST)]]) {
      plane.policy.use(bindings);
      const got = await ask(session, GET);
      expect([got.body, got.code, got.isWhole]).toEqual(['part', code, false]);
    }
  });

  test.each([0, CANCEL])('a request cut off with code %i never looks complete to the upstream', async (code) => {
    const codes: number[] = [];
    const ended: boolean[] = [];
    const closed = Promise.withResolvers<void>();
    await serve((stream) => {
      stream.on('aborted', () => codes.push(stream.rstCode));
      stream.on('end', () => ended.push(stream.closed));
      stream.on('close', closed.resolve);
      stream.resume();
      stream.respond([':status', '200'], OPTIONS);
    });
    const session = await plane.openSession(HOST);
    const stream = session.request(fieldsOf('POST'), { endStream: false, waitForTrailers: true });
    stream.on('response', () => stream.write('part', () => setImmediate(() => stream.close(code))));
    await readReply(stream);
    await closed.promise;
    expect(codes).toEqual([CANCEL]);
    expect(ended.every((wasClosed) => wasClosed)).toBe(true);
  });

  test('a credentialed body that is cut off is not sent, and its request is recorded', async () => {
    plane.policy.use([bearerBinding(HOST)]);
    await serve((stream) => reply(stream, 'hi'));
    const session = await plane.openSession(HOST);
    const stream = session.request(fieldsOf('POST'), { endStream: false, waitForTrailers: true });
    stream.write('part', () => setTimeout(() => stream.close(0), 20));
    await readReply(stream);
    await expect.poll(events).toEqual(['client_gone']);
    expect([seen, plane.budget.heldBytes]).toEqual([[], 0]);
  });

  test('a lost upstream ends its streams, and the next request is sent on a new session', async () => {
    await plane.streamUpstream(HOST, (stream, fields, session) => {
      seen.push(fields);
      if (fields.includes('/lost')) session.destroy();
      else reply(stream, 'hi');
    });
    const session = await plane.openSession(HOST);
    expect((await ask(session, fieldsOf('POST', [], '/lost'), 'x')).body).toContain('upstream_unreachable');
    expect((await ask(session, GET)).body).toBe('hi');
    expect(seen).toHaveLength(2);
  });

  test('a request that the upstream refused unread is sent once more, also a POST, and no other one is', async () => {
    plane.policy.use([bearerBinding(HOST)]);
    for (const [code, attempts] of [
      [constants.NGHTTP2_REFUSED_STREAM, 2],
      [INTERNAL_ERROR, 1],
    ] as const) {
      seen = [];
      await serve((stream) => {
        if (seen.length === 1) stream.close(code);
        else stream.on('data', (data: Buffer) => reply(stream, data));
      });
      const got = await ask(await plane.openSession(HOST), fieldsOf('POST'), 'payload');
      expect(seen).toHaveLength(attempts);
      expect(got.body).toContain(attempts === 2 ? 'payload' : 'upstream_unreachable');
    }
  });

  test('the reset of one stream leaves the others alone', async () => {
    const waiting: ServerHttp2Stream[] = [];
    await serve((stream) => void waiting.push(stream));
    const session = await plane.openSession(HOST);
    const [first, second] = [session.request(GET), session.request(GET)];
    const [, got] = [readReply(first), readReply(second)];
    await expect.poll(() => waiting.length).toBe(2);
    first.close(CANCEL);
    await expect.poll(() => waiting.filter(({ closed }) => closed).length).toBe(1);
    for (const stream of waiting) if (!stream.closed) reply(stream, 'hi');
    expect((await got).body).toBe('hi');
    await expect
      .poll(() => events().toSorted((one, other) => one.localeCompare(other)))
      .toEqual(['client_gone', 'sandbox.proxy.passthrough']);
  });

  test.each([0, 20])('a large reply ends, also for a client that reads it after %i ms', async (waitMs) => {
    const piece = Buffer.alloc(65_536, 'x');
    await serve((stream) => {
      stream.respond([':status', '200'], OPTIONS);
      let left = 200;
      const more = (): void => {
        while (left > 0) {
          left -= 1;
          if (!stream.write(piece)) return void stream.once('drain', more);
        }
        stream.end();
      };
      more();
    });
    const session = await plane.openSession(HOST);
    for (const bindings of [[], [bearerBinding(HOST)]]) {
      plane.policy.use(bindings);
      const stream = session.request(GET);
      let bytes = 0;
      stream.on('data', (data: Buffer) => {
        bytes += data.length;
        if (waitMs === 0 || bytes % 640_000 >= 16_384) return;
        stream.pause();
        setTimeout(() => stream.resume(), waitMs);
      });
      const code = await new Promise((resolve) => {
        stream.on('error', () => undefined);
        stream.on('close', () => resolve(stream.rstCode));
      });
      expect([code, bytes]).toEqual([0, 200 * 65_536]);
    }
  });

  test('a slow reader holds up its own stream alone, and its upstream', async () => {
    const sent: number[] = [];
    await serve((stream, path) => {
      if (path === '/fast') return reply(stream, 'hi');
      stream.respond([':status', '200'], OPTIONS);
      let bytes = 0;
      const more = (): void => {
        while (stream.write(Buffer.alloc(16_384))) bytes += 16_384;
        bytes += 16_384;
        sent.push(bytes);
        stream.once('drain', more);
      };
      more();
    });
    const session = await plane.openSession(HOST);
    const slow = session.request(fieldsOf('GET', [], '/slow'));
    slow.on('error', () => undefined);
    await expect.poll(() => sent.length).toBeGreaterThan(0);
    const isStill = async (): Promise<boolean> => {
      const before = sent.at(-1);
      await ask(session, fieldsOf('GET', [], '/fast'));
      return sent.at(-1) === before;
    };
    await expect.poll(isStill, { timeout: 60_000, interval: 200 }).toBe(true);
    expect(sent.at(-1)).toBeLessThan(4_000_000);
    slow.close(CANCEL);
  });

  test('an upstream that does not read holds up its own stream alone, and its client', async () => {
    await serve((stream, path) => {
      if (path === '/fast') reply(stream, 'hi');
      else stream.pause();
    });
    const session = await plane.openSession(HOST);
    for (const bindings of [[], [bearerBinding(HOST, { body: 'stream' })]]) {
      plane.policy.use(bindings);
      const slow = session.request(fieldsOf('POST', [], '/slow'), { endStream: false });
      slow.on('error', () => undefined);
      let sent = 0;
      const more = (): void =>
        void slow.write(Buffer.alloc(16_384), (error) => {
          if (error) return;
          sent += 16_384;
          more();
        });
      more();
      const isStill = async (): Promise<boolean> => {
        const before = sent;
        await ask(session, fieldsOf('GET', [], '/fast'));
        return sent === before && sent > 0;
      };
      await expect.poll(isStill, { timeout: 60_000, interval: 200 }).toBe(true);
      expect(sent).toBeLessThan(2_000_000);
      slow.close(CANCEL);
    }
  });
});
