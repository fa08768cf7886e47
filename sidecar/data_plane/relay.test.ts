import { createHash } from 'node:crypto';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';

import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { asTold, createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const MASK = '*'.repeat(SECRET.length);
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** Sends a request through a tunnel and reads until the tunnel ends or the text satisfies `enough`. */
async function ask(request: string, enough: (got: string) => boolean): Promise<string> {
  const client = await plane.open(HOST);
  client.write(request, 'latin1');
  return readUntil(client, enough);
}

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
])('masks the credential in a body compressed with %s', async (coding, compress) => {
  const body = compress(`before ${SECRET} after`);
  const head = `HTTP/1.1 200 OK\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\nX-Last: 1\r\n\r\n`;
  await plane.upstream(
    HOST,
    createAnswering(() => head + body.toString('latin1')),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(GET, (got) => got.endsWith('0\r\n\r\n'));
  const begun = asTold('HTTP/1.1 200 OK\r\nX-Last: 1\r\nTransfer-Encoding: chunked\r\n\r\n');
  expect(reply.slice(0, begun.length)).toBe(begun);
  expect(reply).toContain(`before ${MASK} after`);
});

test('closes the tunnel on a broken compressed body', async () => {
  const reply = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope';
  await plane.upstream(
    HOST,
    createAnswering(() => reply),
  );
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, () => false)).not.toContain('0\r\n\r\n');
});

test.each([
  ['', () => plane.policy.use([])],
  [', scrubbed,', () => plane.policy.use([bearerBinding(HOST)])],
])('a truncated reply%s gives the client everything that arrived', async (_how, arrange) => {
  const begun = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf';
  await plane.upstream(HOST, (socket) => socket.once('data', () => socket.end(begun)));
  arrange();
  expect(await ask(GET, () => false)).toBe(begun);
});

test('keeps length and framing of an uncompressed reply that contains the credential', async () => {
  const body = `{"token":"${SECRET}"}`;
  await plane.upstream(
    HOST,
    createAnswering(() => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(GET, (got) => got.endsWith('}'));
  expect(reply).toBe(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n{"token":"${MASK}"}`);
});

test('passes each server-sent event on before the next one is sent', async () => {
  const started = Promise.withResolvers<(event: string) => void>();
  await plane.upstream(HOST, (socket) => {
    started.resolve((event) => socket.write(`${event.length.toString(16)}\r\n${event}\r\n`));
    socket.once('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'),
    );
  });
  plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.endsWith('\r\n\r\n'));
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    (await started.promise)(event);
    expect(await readUntil(client, (got) => got.includes(event))).toContain(event);
  }
});

test("relays interim replies, and answers a credentialed request's Expect: 100-continue itself", async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
  expect(await readUntil(client, (got) => got.endsWith('\r\n\r\n'))).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  client.write('ok');
  expect(await readUntil(client, (got) => got.includes('204 '))).toBe(
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  );
});

/** Framing and syntax of HTTP/1.1; malformed_requests.test.ts and malformed_replies.test.ts have what HTTP/2 has in their place. */
test.each(
  onlyInHttp1([
    ['Content-Length with Transfer-Encoding', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two Content-Lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['an unknown transfer coding', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'X-A: 1\r\n b\r\n\r\n'],
    ['whitespace before the colon', 'X-A : 1\r\n\r\n'],
    ['a second Host', `Host: ${HOST}\r\n\r\n`],
    ['a bare line feed', 'X-A: 1\nX-B: 2\r\n\r\n'],
    ['a broken chunk', 'Transfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ]),
)('refuses %s, with a binding and without', async (_name, rest) => {
  const seen: string[] = [];
  await plane.upstream(HOST, (socket) => {
    socket.on('data', (data: Buffer) => seen.push(data.toString('latin1')));
  });
  for (const bindings of [[], [bearerBinding(HOST)]]) {
    plane.policy.use(bindings);
    const reply = await ask(`POST / HTTP/1.1\r\nHost: ${HOST}\r\n${rest}`, () => false);
    expect(reply).toMatch(/^HTTP\/1\.1 400 .*invalid_request/s);
  }
  expect(seen.join('')).not.toContain(SECRET);
  expect(plane.credentials.asked).toEqual([]);
});

test.each(
  onlyInHttp1([
    [
      'a reply with two framings',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['no HTTP reply', 'SSH-2.0-nope\r\n\r\n'],
    ['an unrequested protocol switch', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ]),
)('answers 502 to %s', async (_name, text) => {
  await plane.upstream(
    HOST,
    createAnswering(() => text),
  );
  expect(await ask(GET, (got) => got.endsWith('\n') && got.includes('{'))).toMatch(
    /^HTTP\/1\.1 502 .*upstream_invalid_reply/s,
  );
});

test('ends early for the client if the upstream does', async () => {
  await plane.upstream(HOST, (socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart'));
  });
  const client = await plane.open(HOST);
  client.write(GET);
  expect(await readUntil(client, () => false)).toBe('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart');
});

test('drops the upstream if the client disconnects in the middle of a reply', async () => {
  const gone = Promise.withResolvers<void>();
  await plane.upstream(HOST, (socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart'));
    socket.once('end', () => socket.end());
    socket.once('close', () => gone.resolve());
  });
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.endsWith('part'));
  client.destroy();
  await expect(gone.promise).resolves.toBeUndefined();
});

/** Every request of HTTP/2 ends the client's side of its stream. */
test.for(onlyInHttp1([null]))('lets a half-closed client read its whole reply', async () => {
  await plane.upstream(HOST, (socket) => {
    socket.once('end', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate'));
    socket.resume();
  });
  const client = await plane.open(HOST);
  client.end(GET);
  expect(await readUntil(client, () => false)).toMatch(/late$/);
});

test('serves pipelined requests in order on one upstream connection', async () => {
  let connections = 0;
  const echo = createAnswering((request) => {
    const path = request.split(' ')[1] ?? '';
    return `HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`;
  });
  await plane.upstream(HOST, (socket, reset) => {
    connections += 1;
    echo(socket, reset);
  });
  const requests = ['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  const got = await ask(requests.join(''), (text) => text.endsWith('/3'));
  expect(got.split('\r\n\r\n').map((part) => part.slice(0, 2))).toEqual(['HT', '/1', '/2', '/3']);
  // Over HTTP/2 it is given each stream; streams.test.ts has that they share a connection.
  expect(connections).toBe(isHttp2() ? 3 : 1);
});

test('repeats a safe request on a new connection if the kept one was closed', async () => {
  let connections = 0;
  await plane.upstream(HOST, (socket) => {
    connections += 1;
    const first = connections === 1;
    let requests = 0;
    socket.on('data', () => {
      requests += 1;
      if (first && requests === 2) socket.destroy();
      else socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  const client = await plane.open(HOST);
  for (const expected of [1, 2]) {
    client.write(GET);
    expect(await readUntil(client, (got) => got.endsWith('\r\n\r\n'))).toBe('HTTP/1.1 204 No Content\r\n\r\n');
    expect(connections).toBe(expected);
  }
});

test.each([
  ['a POST', `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\n\r\n`],
  ['a PATCH with a credential', `PATCH / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2\r\n\r\nok`],
  ['an unknown method', `ORDER / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
  ['a body that was consumed', `PUT / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2\r\n\r\nok`],
])('does not resend %s, which may have taken effect before the connection was lost', async (what, request) => {
  const seen: string[] = [];
  await plane.upstream(HOST, (socket) => {
    socket.on('data', (data: Buffer) => {
      const text = data.toString('latin1');
      if (/^[A-Z]+ \//.test(text)) seen.push(text.slice(0, text.indexOf(' ')));
      if (text.startsWith('GET')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      else socket.destroy();
    });
  });
  if (what.endsWith('credential')) plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(GET);
  await readUntil(client, (got) => got.endsWith('\r\n\r\n'));
  client.write(request);
  expect(await readUntil(client, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 502 .*upstream_unreachable/s);
  expect(seen).toEqual(['GET', request.slice(0, request.indexOf(' '))]);
});

test('forwards a foreign credential unchanged under sentinel-swap', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), 'HTTP/1.1 204 No Content\r\n\r\n')),
  );
  const emit = { mechanism: 'sentinel-swap', sentinel: 'placeholder-0000-0000' } as const;
  plane.policy.use([bearerBinding(HOST, { emit })]);
  const foreign = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer own\r\nConnection: keep-alive\r\n\r\n`;
  await ask(foreign, (got) => got.endsWith('\r\n\r\n'));
  const own = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nauthorization: Bearer ${emit.sentinel}\r\nX-Quote: ${emit.sentinel}\r\n\r\n`;
  await ask(own, (got) => got.endsWith('\r\n\r\n'));
  expect(seen).toEqual([
    asTold(foreign),
    asTold(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nauthorization: Bearer ${SECRET}\r\nX-Quote: ${emit.sentinel}\r\n\r\n`),
  ]);
  expect(plane.audit.events.map((event) => event.type)).toEqual([
    'sandbox.proxy.foreign_credential_kept',
    'sandbox.proxy.binding_injected',
  ]);
});

test('adds no credential if a foreign one is in the place of another binding of the host', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), 'HTTP/1.1 204 No Content\r\n\r\n')),
  );
  const api = bearerBinding(HOST, {
    injection: { scheme: 'header-template', header: 'PRIVATE-TOKEN', template: '{token}' },
  });
  const emit = { mechanism: 'sentinel-swap', sentinel: 'placeholder-0000-0000' } as const;
  const git = bearerBinding(HOST, { id: 'bnd_git', injection: { scheme: 'basic', username: 'oauth2' }, emit });
  plane.policy.use([api, git]);
  const foreign = `GET /repo.git HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Basic bWU6b3du\r\n\r\n`;
  await ask(foreign, (got) => got.endsWith('\r\n\r\n'));
  await ask(`GET /api HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, (got) => got.endsWith('\r\n\r\n'));
  const own = `GET /api HTTP/1.1\r\nHost: ${HOST}\r\nPRIVATE-TOKEN: ${SECRET}\r\n\r\n`;
  expect(seen).toEqual([asTold(foreign), asTold(own)]);
  expect(plane.audit.events.map(({ type, data }) => [type, data['svc.proxy.binding.scheme']])).toEqual([
    ['sandbox.proxy.foreign_credential_kept', 'basic'],
    ['sandbox.proxy.binding_injected', 'header-template'],
  ]);
});

test.each(['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:10.0.0.1]', '0x7f000001', '0177.1'])(
  'refuses passthrough to the private address %s',
  async (address) => {
    const client = await plane.open(address, '');
    client.write(`GET / HTTP/1.1\r\nHost: ${address}\r\n\r\n`);
    expect(await readUntil(client, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 403 /);
  },
);

/** Answers a WebSocket handshake, sends `frames`, and passes the client's data to `onClient`. */
function webSocketUpstream(frames: Buffer, onRequest: (request: string) => void, onClient: (data: Buffer) => void) {
  return plane.upstream(HOST, (socket) => {
    socket.once('data', (data: Buffer) => {
      onRequest(data.toString('latin1'));
      const accept = createHash('sha1').update('x').digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.write(frames);
      socket.on('data', onClient);
    });
    socket.on('end', () => socket.end());
  });
}

const HANDSHAKE = `GET /ws HTTP/1.1\r\nHost: ${HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n`;

function textFrame(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]);
}

test.for(onlyInHttp1([null]))('carries a WebSocket byte for byte without a binding', async () => {
  const requests: string[] = [];
  const fromClient = Promise.withResolvers<string>();
  await webSocketUpstream(
    textFrame(`hello ${SECRET}`),
    (request) => requests.push(request),
    (data) => fromClient.resolve(data.toString('latin1')),
  );
  const client = await plane.open(HOST);
  client.write(HANDSHAKE);
  expect(await readUntil(client, (got) => got.endsWith(SECRET))).toContain(`\r\n\r\n\x81\x1fhello ${SECRET}`);
  client.write('raw bytes');
  expect(await fromClient.promise).toBe('raw bytes');
  expect(requests).toEqual([HANDSHAKE]);
});

test.for(onlyInHttp1([null]))(
  'adds the credential to a WebSocket handshake, drops its extensions, and masks its messages',
  async () => {
    const requests: string[] = [];
    await webSocketUpstream(
      textFrame(`hello ${SECRET}`),
      (request) => requests.push(request),
      () => undefined,
    );
    plane.policy.use([bearerBinding(HOST)]);
    const client = await plane.open(HOST);
    client.write(HANDSHAKE);
    const got = await readUntil(client, (text) => text.endsWith('*'));
    expect(got).toContain(`\x81\x1fhello ${MASK}`);
    expect(requests[0]).toContain(`Authorization: Bearer ${SECRET}`);
    expect(requests[0]).toContain('Connection: Upgrade');
    expect(requests[0]).not.toContain('Extensions');
  },
);

test('refuses everything while no policy is in force', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => 'HTTP/1.1 204 No Content\r\n\r\n'),
  );
  plane.policy.refuse('snapshot_expired');
  expect(await ask(GET, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 503 .*snapshot_expired/s);
});

test('refuses credentialed requests while the spool is full, and forwards the others', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => 'HTTP/1.1 204 No Content\r\n\r\n'),
  );
  plane.audit.accepting = false;
  expect(await ask(GET, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 204 /);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 503 .*audit_unavailable/s);
  expect(plane.credentials.asked).toEqual([]);
});

test('refuses every request, also without a binding, while the reserve of the spool is full too', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), 'HTTP/1.1 204 No Content\r\n\r\n')),
  );
  plane.audit.exhausted = true;
  expect(await ask(GET, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 503 .*audit_unavailable/s);
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(GET, (got) => got.endsWith('\n'))).toMatch(/^HTTP\/1\.1 503 .*audit_unavailable/s);
  expect(seen).toEqual([]);
});
