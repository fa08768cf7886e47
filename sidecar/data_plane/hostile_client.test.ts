import type { Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import type { SecureVersion, TLSSocket } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { turns } from '../testing/scripted_stream.ts';
import { createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';

let plane: DataPlane;
let raws: Socket[];

beforeEach(async () => {
  raws = [];
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
});

afterEach(async () => {
  for (const raw of raws) raw.destroy();
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** A TCP connection to the proxy port that has sent `text`. */
async function dialProxy(text: string): Promise<Socket> {
  const raw = connectTcp({ port: plane.port, host: '127.0.0.1' });
  raws.push(raw);
  raw.on('error', () => undefined);
  await new Promise((resolve) => raw.once('connect', resolve));
  raw.write(text, 'latin1');
  return raw;
}

function connectLine(target = `${HOST}:443`): string {
  const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
}

async function openTunnel(): Promise<Socket> {
  const raw = await dialProxy(connectLine());
  await new Promise((resolve) => raw.once('data', resolve));
  return raw;
}

/**
 * TLS over an open tunnel, with the TCP connection below it. With TLS 1.2 the server has nothing left to send after the
 * handshake, so a reset meets an idle connection.
 */
async function openTls(maxVersion: SecureVersion = 'TLSv1.2'): Promise<{ raw: Socket; tls: TLSSocket }> {
  const { raw, socket } = await beginTls(maxVersion);
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  return { raw, tls: plane.clientOn(socket, HOST) };
}

async function beginTls(maxVersion: SecureVersion): Promise<{ raw: Socket; socket: TLSSocket }> {
  const raw = await openTunnel();
  const socket = connectTls({ socket: raw, servername: HOST, ca: plane.caPem, maxVersion, ...offered() });
  socket.on('error', () => undefined);
  return { raw, socket };
}

function offered(): { readonly ALPNProtocols?: string[] } {
  return isHttp2() ? { ALPNProtocols: ['h2'] } : {};
}

async function allClosed(): Promise<void> {
  await vi.waitFor(() => expect(plane.openTunnels()).toBe(0), { timeout: 60_000 });
}

function reasons(): (string | undefined)[] {
  return plane.audit.events.map((event) => event.data['svc.proxy.reason'] ?? event.type);
}

test('accepts a ClientHello in the same packet as the CONNECT', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
  );
  const raw = await dialProxy('');
  // Collects the first TLS bytes and prepends the CONNECT.
  const first = vi.spyOn(raw, 'write');
  const hello = await helloOf(HOST);
  first.mockRestore();
  raw.write(Buffer.concat([Buffer.from(connectLine()), hello]));
  const got = await new Promise<Buffer>((resolve) => {
    let all = Buffer.alloc(0);
    raw.on('data', (data: Buffer) => {
      all = Buffer.concat([all, data]);
      if (all.includes('\r\n\r\n') && all.length > all.indexOf('\r\n\r\n') + 10) resolve(all);
    });
  });
  const afterHead = got.subarray(got.indexOf('\r\n\r\n') + 4);
  expect(got.toString('latin1')).toMatch(/^HTTP\/1\.1 200 /);
  expect(afterHead[0]).toBe(0x16);
  expect(afterHead[5]).toBe(0x02);
});

/** The bytes of a ClientHello. */
async function helloOf(servername: string): Promise<Buffer> {
  const server = (await import('node:net')).createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const hello = new Promise<Buffer>((resolve) =>
    server.once('connection', (socket) =>
      socket.once('data', (data) => {
        socket.destroy();
        resolve(data);
      }),
    ),
  );
  const tls = connectTls({ port, host: '127.0.0.1', servername, ...offered() });
  tls.on('error', () => undefined);
  const bytes = await hello;
  tls.destroy();
  await new Promise((resolve) => server.close(resolve));
  return bytes;
}

test.each(['GET / HTTP/1.1\r\n\r\n', 'SSH-2.0-OpenSSH_9.2\r\n', '\0'])(
  'refuses a client that sends %j in place of its handshake, at once and in the log alone',
  async (text) => {
    const raw = await openTunnel();
    const got = new Promise((resolve) => raw.once('data', resolve).once('end', () => resolve('nothing')));
    raw.write(text);
    expect(await got).toBe('nothing');
    raw.end();
    await allClosed();
    expect(reasons()).toEqual(['invalid_request']);
  },
);

test.each([
  ['resets in place of its handshake', (raw: Socket) => raw.resetAndDestroy()],
  ['finishes in place of its handshake', (raw: Socket) => raw.end()],
  [
    'sends half a handshake and resets',
    (raw: Socket) => raw.write(Buffer.from([0x16, 3, 1, 2, 0]), () => raw.resetAndDestroy()),
  ],
])('records a client that %s, once', async (_name, act) => {
  act(await openTunnel());
  await allClosed();
  expect(reasons()).toEqual(['client_tls_failed']);
});

test('survives a client that resets with its CONNECT', async () => {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const raw = await dialProxy(connectLine());
    raw.resetAndDestroy();
  }
  await allClosed();
  const raw = await openTunnel();
  raw.destroy();
  await allClosed();
  expect(plane.audit.events.length).toBeGreaterThan(0);
});

/** malformed_requests.test.ts has a head of HTTP/2 without its end. */
test.for(onlyInHttp1([null]))('records a truncated head together with its connection', async () => {
  const { raw, tls } = await openTls();
  await new Promise((resolve) => tls.write('GET / HTTP/1.1\r\nHo', resolve));
  raw.end();
  await allClosed();
  expect(reasons()).toEqual(['invalid_request']);
});

test('returns the budget when a client resets in the middle of a body, and records its request', async () => {
  plane.policy.use([bearerBinding(HOST)]);
  const { raw, tls } = await openTls();
  tls.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 1000\r\n\r\npart`);
  await vi.waitFor(() => expect(plane.budget.heldBytes).toBe(4), { timeout: 60_000 });
  raw.resetAndDestroy();
  await allClosed();
  expect(plane.budget.heldBytes).toBe(0);
  expect(reasons()).toEqual(['client_gone']);
  expect(plane.credentials.asked).toEqual([]);
});

test('records a credentialed request whose client resets before the reply, and drops its upstream', async () => {
  const asked = Promise.withResolvers<void>();
  const dropped = Promise.withResolvers<void>();
  await plane.upstream(HOST, (socket) => {
    socket.once('data', () => asked.resolve());
    socket.once('end', () => dropped.resolve());
    socket.once('close', () => dropped.resolve());
  });
  plane.policy.use([bearerBinding(HOST)]);
  const { raw, tls } = await openTls();
  tls.write(GET);
  await asked.promise;
  raw.resetAndDestroy();
  await dropped.promise;
  await allClosed();
  expect(reasons()).toEqual(['client_gone']);
  expect(plane.audit.events[0]?.data['svc.proxy.binding.scheme']).toBe('bearer');
});

test('records a request once if its client resets in the middle of the reply', async () => {
  await plane.upstream(HOST, (socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart'));
  });
  const { raw, tls } = await openTls();
  tls.write(GET);
  await readUntil(tls, (got) => got.endsWith('part'));
  raw.resetAndDestroy();
  await allClosed();
  expect(reasons()).toEqual(['sandbox.proxy.passthrough']);
});

async function sendAndReset(): Promise<void> {
  const { raw, tls } = await openTls('TLSv1.3');
  tls.write(GET);
  await new Promise(setImmediate);
  raw.resetAndDestroy();
}

test('releases clients that reset with their request, also if TLS reports a normal end', async () => {
  await plane.upstream(HOST, (socket) => {
    socket.resume();
  });
  for (let round = 0; round < 5; round += 1) await Promise.all(Array.from({ length: 24 }, sendAndReset));
  await allClosed();
  expect(plane.openTunnels()).toBe(0);
});

test.for(onlyInHttp1(['snapshot_expired'] as const))(
  'a client that is refused (%s) while it sends gets the answer and can send the rest; its tunnel counts until then',
  async (reason) => {
    plane.policy.refuse(reason);
    const tls = await plane.open(HOST);
    const lost: unknown[] = [];
    tls.on('error', (error) => lost.push(error));
    tls.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 8\r\n\r\nhalf`);
    expect(await readUntil(tls, () => false)).toContain(`"code":"${reason}"`);
    await turns(20);
    expect([tls.destroyed, plane.openTunnels()]).toEqual([false, 1]);
    tls.end('rest');
    await allClosed();
    expect(lost).toEqual([]);
  },
);

test.for(onlyInHttp1(['SSH-2.0-OpenSSH_9.2\r\n', '\0', '\x16\x03\x01']))(
  'refuses a client that sends %j inside TLS, without waiting for more',
  async (text) => {
    const tls = await plane.open(HOST);
    tls.write(text, 'latin1');
    expect(await readUntil(tls, () => false)).toMatch(
      /^HTTP\/1\.1 400 .*"code":"invalid_request","message":"the first/s,
    );
    tls.end();
    await allClosed();
    expect(reasons()).toEqual(['invalid_request']);
  },
);

test.for(isHttp2() ? ['SSH-2.0-OpenSSH_9.2\r\n', '\0'.repeat(24)] : [])(
  'ends a tunnel of HTTP/2 with a client that sends %j, without waiting for more',
  async (text) => {
    await plane.streamUpstream(HOST, (stream) => stream.respond());
    const tls = await plane.openTls(HOST, ['h2']);
    tls.write(text, 'latin1');
    await readUntil(tls, () => false);
    tls.end();
    await allClosed();
    expect(reasons()).toEqual(['client_gone']);
  },
);

test('does not retry a request for a client that is gone', async () => {
  let requests = 0;
  const second = Promise.withResolvers<void>();
  await plane.upstream(HOST, (socket) => {
    socket.on('data', () => {
      requests += 1;
      if (requests === 1) socket.write(DONE);
      else second.resolve();
    });
    socket.on('end', () => socket.end());
  });
  const { raw, tls } = await openTls();
  tls.write(GET);
  await readUntil(tls, (got) => got.endsWith('done'));
  tls.write(GET);
  await second.promise;
  raw.resetAndDestroy();
  await allClosed();
  expect(requests).toBe(2);
});

test('frees the tunnel and stops dialling when the client leaves while the upstream does not answer', async () => {
  const { createServer } = await import('node:net');
  const silent = createServer();
  const accepted = Promise.withResolvers<Socket>();
  silent.on('connection', (socket) => accepted.resolve(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  plane.pin(HOST, typeof address === 'object' && address !== null ? address.port : 0);
  const { raw, socket } = await beginTls('TLSv1.2');
  // Over HTTP/2 the handshake itself waits for the upstream.
  socket.once('secureConnect', () => socket.write(GET));
  const upstream = await accepted.promise;
  const gone = new Promise((resolve) => upstream.once('close', resolve));
  upstream.resume();
  upstream.on('error', () => undefined);
  raw.resetAndDestroy();
  await gone;
  await allClosed();
  expect(reasons()).toEqual([isHttp2() ? 'client_tls_failed' : 'client_gone']);
  await new Promise((resolve) => silent.close(resolve));
});

test('refuses an invalid request before it authenticates the client, and records it', async () => {
  expect(await plane.raw('\x16\x03\x01 garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 .*invalid_request/s);
  expect(await plane.raw('A'.repeat(70_000), (got) => got.includes('}'))).toMatch(/^HTTP\/1\.1 431 .*head_too_large/s);
  expect(reasons()).toEqual(['invalid_request', 'head_too_large']);
});

test('asks for no body (100 Continue) if the request will be refused', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const { tls } = await openTls();
  tls.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n`);
  expect(await readUntil(tls, (got) => isHttp2() && got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 413 /);
});

/** streams.test.ts has the stream whose client is told to stop. */
test.for(onlyInHttp1([null]))('answers a refused request whose body still arrives, and closes', async () => {
  plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
  const { tls } = await openTls();
  tls.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4000000\r\n\r\n`);
  tls.write(Buffer.alloc(4_000_000));
  tls.write(GET);
  expect(await readUntil(tls, () => false)).toMatch(/^HTTP\/1\.1 403 [^]*effect_not_allowed[^{}]*\}\}\n$/);
  expect(reasons()).toEqual(['effect_not_allowed']);
  await allClosed();
});

/** malformed_requests.test.ts has what ends a tunnel of HTTP/2. */
test.for(onlyInHttp1([null]))('serves the requests after a refusal, and stops at garbage', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
  );
  plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
  const { tls } = await openTls();
  tls.write(`DELETE / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n${GET}garbage\r\n\r\n${GET}`);
  const got = await readUntil(tls, () => false);
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 403', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  expect(reasons()).toEqual(['effect_not_allowed', 'sandbox.proxy.binding_injected', 'invalid_request']);
});

test('passes pipelined and later requests of a connection to the local API', async () => {
  const one = 'GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
  const raw = await dialProxy(one + one);
  let got = '';
  raw.on('data', (data) => (got += data.toString()));
  await vi.waitFor(() => expect(got.match(/local api/g)).toHaveLength(2), { timeout: 60_000 });
  raw.write(one);
  await vi.waitFor(() => expect(got.match(/local api/g)).toHaveLength(3), { timeout: 60_000 });
});
