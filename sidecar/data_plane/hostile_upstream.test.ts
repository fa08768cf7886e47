import { brotliCompressSync, constants, createGzip, gzipSync, zstdCompressSync } from 'node:zlib';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { DataPlane, UpstreamHandler } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { asTold, createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const MASK = '*'.repeat(SECRET.length);
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** An upstream that answers the n-th request it receives, over all connections, with the n-th of `replies`. */
async function replying(...replies: (string | UpstreamHandler)[]): Promise<() => number> {
  let requests = 0;
  await plane.upstream(HOST, (socket, reset) => {
    socket.on('data', () => {
      const reply = replies[requests] ?? 'HTTP/1.1 500 No Such Reply\r\nContent-Length: 0\r\n\r\n';
      requests += 1;
      if (typeof reply === 'string') socket.write(reply, 'latin1');
      else reply(socket, reset);
    });
    socket.on('end', () => socket.end());
  });
  return () => requests;
}

async function ask(request: string, enough: (got: string) => boolean): Promise<string> {
  const client = await plane.open(HOST);
  client.write(request, 'latin1');
  return readUntil(client, enough);
}

test('masks the credential in the head of an interim reply', async () => {
  await replying(`HTTP/1.1 103 ${SECRET}\r\nLink: <${SECRET}>\r\n\r\n${DONE}`);
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(GET, (got) => got.endsWith('done'));
  expect(reply).toBe(asTold(`HTTP/1.1 103 ${MASK}\r\nLink: <${MASK}>\r\n\r\n${DONE}`));
});

test.for(onlyInHttp1([null]))('masks the credential in the head of a 101 reply', async () => {
  await replying(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Echo: ${SECRET}\r\n\r\n`,
  );
  plane.policy.use([bearerBinding(HOST)]);
  const handshake = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
  const reply = await ask(handshake, (got) => got.endsWith('\r\n\r\n'));
  expect(reply).toContain(`X-Echo: ${MASK}\r\n`);
});

/** Every reply header that gives a client a session, asks it for credentials, or offers an alternative service. */
const AUTHORITY_LINES = [
  'Set-Cookie: session=own; Path=/',
  'SET-COOKIE2: session=own',
  'WWW-Authenticate: Basic realm="x"',
  'Proxy-Authenticate: Negotiate',
  'Authentication-Info: nextnonce="x"',
  'Proxy-Authentication-Info: x',
  'Optional-WWW-Authenticate: Basic',
  'Authentication-Control: Basic realm="x"',
  'Alt-Svc: h3="other.example.test:443"',
].join('\r\n');

test('a bound reply gives the agent no session: cookies and challenges are removed from interim heads, head and trailers', async () => {
  await replying(
    `HTTP/1.1 103 Early Hints\r\n${AUTHORITY_LINES}\r\nLink: <a>\r\n\r\nHTTP/1.1 401 No\r\n${AUTHORITY_LINES}\r\nX-A:  1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\n${AUTHORITY_LINES}\r\nX-T: 2\r\n\r\n`,
  );
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('2\r\n\r\n'))).toBe(
    asTold(
      'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 401 No\r\nX-A:  1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\nX-T: 2\r\n\r\n',
    ),
  );
  const data = plane.audit.events.at(-1)?.data;
  expect(data?.['svc.proxy.reply.withheld']).toHaveLength(9);
  expect(JSON.stringify(data)).not.toContain('session=own');
});

test.each<readonly [string, string, string]>([
  ['in one piece with its body', `HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 4\r\n\r\ndone`, DONE],
  ['without a body', `HTTP/1.1 204 No\r\nSet-Cookie: a=b\r\n\r\n`, asTold('HTTP/1.1 204 No\r\n\r\n')],
  ...onlyInHttp1([
    [
      'that switches protocols',
      'HTTP/1.1 101 Now\r\nSet-Cookie: a=b\r\nUpgrade: websocket\r\n\r\n',
      'HTTP/1.1 101 Now\r\nUpgrade: websocket\r\n\r\n',
    ] as const,
  ]),
])(
  'a bound reply %s loses its cookies, whether or not its credential can be masked',
  async (_name, reply, expected) => {
    await replying(reply, reply);
    const handshake = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    for (const secret of [SECRET, 'short']) {
      plane.credentials.set({ owner: 'personal', path: 'user/demo' }, secret);
      plane.policy.use([bearerBinding(HOST, { id: `bnd_${secret}` })]);
      expect(await ask(handshake, (got) => got.length >= expected.length)).toBe(expected);
    }
  },
);

test('a binding that keeps cookies passes them on, masked, and the event records it', async () => {
  await replying(`HTTP/1.1 200 OK\r\nSet-Cookie: a=${SECRET}\r\nAlt-Svc: x\r\nContent-Length: 4\r\n\r\ndone`);
  plane.policy.use([bearerBinding(HOST, { keepCookies: true })]);
  expect(await ask(GET, (got) => got.endsWith('done'))).toBe(
    `HTTP/1.1 200 OK\r\nSet-Cookie: a=${MASK}\r\nContent-Length: 4\r\n\r\ndone`,
  );
  expect(plane.audit.events.at(-1)?.data).toMatchObject({
    'svc.proxy.reply.withheld': ['alt-svc'],
    'svc.proxy.reply.kept': ['set-cookie'],
  });
});

test('the event names a reply that may have given the agent its own credential', async () => {
  await replying(DONE, 'HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\ndone');
  plane.policy.use([bearerBinding(HOST)]);
  for (let request = 0; request < 2; request += 1) {
    await ask(GET.replace('/', '/oauth/token'), (got) => got.endsWith('done'));
  }
  expect(plane.audit.events.map(({ data }) => data['svc.proxy.reply.may_hold'])).toEqual(['OAuth tokens', undefined]);
});

test("masks a credential with a colon if a header's name and value form it", async () => {
  const secret = 'someuser:longpassword';
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, secret);
  await replying(`HTTP/1.1 200 OK\r\n${secret}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${secret}\r\n\r\n`);
  plane.policy.use([bearerBinding(HOST)]);
  const line = isHttp2() ? '********: ************' : '********:************';
  expect(await ask(GET, (got) => got.split(line).length === 3 && got.endsWith('\r\n\r\n'))).toBe(
    asTold(`HTTP/1.1 200 OK\r\n${line}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${line}\r\n\r\n`),
  );
});

test('masks the credential under several content codings, decoded from the last to the first', async () => {
  const body = brotliCompressSync(gzipSync(`before ${SECRET} after`)).toString('latin1');
  await replying(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('0\r\n\r\n'))).toContain(`before ${MASK} after`);
});

test('never reads bytes after a compressed body as the next reply', async () => {
  const body = `${gzipSync('small').toString('latin1')}${'\0'.repeat(20_000)}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong`;
  await replying(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n${body}`, DONE);
  plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(GET);
  expect(await readUntil(client, (got) => got.endsWith('0\r\n\r\n'))).toContain('small');
  client.write(GET);
  expect(await readUntil(client, (got) => got.endsWith('done') || got.endsWith('wrong'))).toBe(DONE);
});

test('survives what a zstd decoder emits after the end of its data', async () => {
  const end = zstdCompressSync('small').toString('latin1');
  await replying((socket) => {
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: ${end.length + 40}\r\n\r\n${end}`,
      'latin1',
    );
    socket.write('x'.repeat(20), () => socket.write('y'.repeat(20)));
  }, DONE);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('0\r\n\r\n'))).toContain('small');
});

test('refuses a zstd body that needs a larger window than the coding allows', async () => {
  const large = { params: { [constants.ZSTD_c_windowLog]: 27 } };
  const body = zstdCompressSync(Buffer.alloc(20_000_000, 'a'), large).toString('latin1');
  await replying(`HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, () => false)).toMatch(/\r\n\r\n$/);
});

test.for(onlyInHttp1([null]))('ends the connection of an HTTP/1.0 client after a decoded reply', async () => {
  const body = gzipSync('decoded').toString('latin1');
  await replying(
    `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\nConnection: keep-alive\r\n\r\n${body}`,
  );
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(`GET / HTTP/1.0\r\nHost: ${HOST}\r\nConnection: keep-alive\r\n\r\n`, () => false);
  expect(reply).toMatch(/\r\n\r\ndecoded$/);
  expect(reply).not.toMatch(/keep-alive/i);
});

test.for(onlyInHttp1([null]))('sends no interim reply to an HTTP/1.0 client', async () => {
  await replying(`HTTP/1.1 103 Early Hints\r\n\r\n${DONE}`);
  expect(await ask(`GET / HTTP/1.0\r\n\r\n`, (got) => got.endsWith('done'))).toBe(DONE);
});

test.each([
  ['204', GET, 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['304', GET, 'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'],
  ['HEAD', `HEAD / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'],
])('never reads bytes after the bodiless reply %s as the next reply', async (_name, request, head) => {
  const requests = await replying(`${head}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong`, DONE);
  const client = await plane.open(HOST);
  client.write(request);
  expect(await readUntil(client, (got) => got.endsWith('\r\n\r\n'))).toBe(head);
  client.write(GET);
  expect(await readUntil(client, (got) => got.endsWith('done') || got.endsWith('wrong'))).toBe(DONE);
  expect(requests()).toBe(2);
});

test('survives the reset of an idle connection and dials again', async () => {
  const first = Promise.withResolvers<() => void>();
  await replying((socket, reset) => {
    socket.write(DONE);
    first.resolve(reset);
  }, DONE);
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.endsWith('done'));
  (await first.promise)();
  client.write(GET);
  expect(await readUntil(client, (got) => got.endsWith('done'))).toBe(DONE);
});

test('sends a request only once if part of the reply arrived before the connection was lost', async () => {
  const begun = Promise.withResolvers<() => void>();
  const requests = await replying(DONE, (socket, reset) => {
    // A head of HTTP/2 arrives whole or not at all.
    socket.write(isHttp2() ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : 'HTTP/1.1 200 O', () => begun.resolve(reset));
  });
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.endsWith('done'));
  client.write(GET);
  if (isHttp2()) await readUntil(client, (got) => got.endsWith('\r\n\r\n'));
  (await begun.promise)();
  expect(await readUntil(client, (got) => got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 502 /);
  expect(requests()).toBe(2);
});

test.for(onlyInHttp1([null]))('drops the client if the upstream of an upgraded connection is lost', async () => {
  await replying((socket, reset) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n', reset);
  });
  const client = await plane.open(HOST);
  const closed = new Promise((resolve) => client.once('end', resolve));
  client.on('error', () => undefined);
  client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  client.resume();
  await closed;
  await vi.waitFor(() => expect(plane.openTunnels()).toBe(0), { timeout: 60_000 });
});

test.each([
  ['resets in the handshake', (_socket: TLSSocket, reset: () => void) => reset()],
  ['closes after the handshake', (socket: TLSSocket) => socket.destroy()],
  ['closes after the request', (socket: TLSSocket) => socket.once('data', () => socket.destroy())],
  ['answers half a head', (socket: TLSSocket) => socket.once('data', () => socket.end('HTTP/1.1 200'))],
])('answers 502 for an upstream that %s, and records it once', async (_name, handler) => {
  await plane.upstream(HOST, handler);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 502 /);
  expect(plane.audit.events).toHaveLength(1);
  expect(plane.audit.events[0]?.data['svc.proxy.binding.host']).toBe(HOST);
});

test('answers 502 to an upstream that sends endless interim replies', async () => {
  await replying('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(200));
  const reply = await ask(GET, (got) => got.endsWith('}\n'));
  expect(reply).toMatch(/HTTP\/1\.1 502 .*upstream_invalid_reply/s);
});

test('delivers the whole last reply to a slow client', async () => {
  const body = 'x'.repeat(6 * 1024 * 1024);
  const upstreamGone = Promise.withResolvers<void>();
  await replying((socket) => {
    socket.once('close', () => upstreamGone.resolve());
    socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  });
  const client = await plane.open(HOST);
  let got = 0;
  const ended = new Promise((resolve) => client.once('end', resolve));
  client.on('error', () => undefined);
  client.on('data', (data: Buffer) => {
    got += data.length;
    client.pause();
    setImmediate(() => client.resume());
  });
  // The end of an upstream's connection ends no tunnel of HTTP/2.
  client.write(isHttp2() ? GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') : GET);
  await ended;
  expect(got).toBeGreaterThanOrEqual(body.length);
});

test('answers a request whose body still arrives if the upstream replies early and closes', async () => {
  await plane.upstream(HOST, (socket) => {
    socket.resume();
    socket.end('HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });
  const client = await plane.open(HOST);
  client.on('error', () => undefined);
  client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 100000000\r\n\r\n`);
  client.write(Buffer.alloc(1024 * 1024));
  expect(await readUntil(client, (got) => isHttp2() && got.endsWith('\r\n\r\n'))).toMatch(/^HTTP\/1\.1 413 /);
  expect(plane.audit.events).toHaveLength(1);
});

test('passes each event through a decoder before the next one is sent', async () => {
  const started = Promise.withResolvers<(event: string) => void>();
  await replying((socket) => {
    socket.write(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const encoder = createGzip({ flush: constants.Z_SYNC_FLUSH });
    encoder.on('data', (data: Buffer) => {
      socket.write(`${data.length.toString(16)}\r\n`);
      socket.write(data);
      socket.write('\r\n');
    });
    encoder.write('data: 0\n\n');
    started.resolve((event) => encoder.write(event));
  });
  plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.includes('data: 0\n\n'));
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    (await started.promise)(event);
    expect(await readUntil(client, (got) => got.includes(event))).toContain(event);
  }
});

test("keeps the answers of two hosts apart if one tunnel tries to use the other's", async () => {
  await plane.upstream(
    'one.example.test',
    createAnswering(() => DONE),
  );
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
    'one.example.test',
  );
  const one = await plane.open('one.example.test');
  one.write('GET / HTTP/1.1\r\nHost: one.example.test\r\n\r\n');
  await readUntil(one, (got) => got.endsWith('done'));
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expect(await ask(GET, (got) => got.endsWith('}\n'))).toMatch(/^HTTP\/1\.1 502 .*upstream_tls_failed/s);
  }
});
