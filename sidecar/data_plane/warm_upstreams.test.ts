import { once } from 'node:events';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { setImmediate as turn } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { LiveSession } from '../ports.ts';
import { OpenTunnels } from '../session/open_tunnels.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, isHttp2, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** Upstream connections between the tunnels of a session (decision 0114). */

const HOST = 'api.example.test';
const SECRET = 'planted-bound-secret-0123456789';
const BINDING: HostBinding = { ...bearerBinding(HOST), effect: 'write' };
const CREDENTIAL = { owner: 'personal', path: 'user/demo' } as const;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

let plane: DataPlane;
/** The requests of each upstream connection. */
let requests: string[][];
let upstreams: TLSSocket[];
let answer: (request: string) => string;

beforeEach(async () => {
  requests = [];
  upstreams = [];
  answer = () => OK;
  plane = await startDataPlane();
  plane.credentials.set(CREDENTIAL, SECRET);
  await plane.upstream(HOST, listenAs(answering));
  plane.policy.use([BINDING]);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

type Peer = (socket: TLSSocket, answered: (request: string) => string) => void;

const answering: Peer = (socket, answered) => createAnswering(answered)(socket);

function listenAs(peer: Peer): (socket: TLSSocket) => void {
  return (socket) => {
    const own: string[] = [];
    requests.push(own);
    upstreams.push(socket);
    peer(socket, (request) => {
      own.push(request);
      return answer(request);
    });
  };
}

interface Sent {
  readonly request?: string;
  readonly token?: string;
  readonly host?: string;
}

const GET = `GET /items HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const POST = `POST /items HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4\r\n\r\nbody`;

/** Sends one request in a tunnel of its own, and waits until the tunnel has ended. */
async function ask({ request = GET, token = plane.token, host = HOST }: Sent = {}): Promise<string> {
  const client = await plane.open(host, host, token);
  const reply = readUntil(client, (got) => got.endsWith('ok') || got.endsWith('}\n'));
  client.write(request);
  const got = await reply;
  client.end();
  await waitUntil(() => plane.openTunnels() === 0);
  return got;
}

/** The same over HTTP/2. */
async function askOnce(method = 'GET'): Promise<number> {
  const client = await plane.openSession(HOST);
  const stream = client.request({ ':method': method, ':path': '/items' });
  stream
    .on('error', () => undefined)
    .resume()
    .end();
  let status = 0;
  stream.once('response', (got) => (status = got[':status'] ?? 0));
  await new Promise((resolve) => stream.once('close', resolve));
  client.close();
  await waitUntil(() => plane.openTunnels() === 0);
  return status;
}

async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

const connections = (): number => requests.length;

// Over HTTP/2 the fixture tells each stream as a connection; the tests of sessions are below.
describe.skipIf(isHttp2())('a tunnel leaves its connection to a bound host to the next one', () => {
  test('of the same session, for the same binding, and each request has its own event', async () => {
    for (let n = 0; n < 3; n += 1) expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    expect(requests.map(({ length }) => length)).toEqual([3]);
    expect(requests[0]?.every((request) => request.includes(`Bearer ${SECRET}`))).toBe(true);
    expect(plane.audit.events.map(({ type }) => type)).toEqual(Array(3).fill('sandbox.proxy.binding_injected'));
  });

  test('two at once have one each', async () => {
    await ask();
    const clients = await Promise.all([plane.open(HOST), plane.open(HOST)]);
    const replies = clients.map((client) => readUntil(client, (got) => got.endsWith('ok')));
    for (const client of clients) client.write(GET);
    await Promise.all(replies);
    expect(connections()).toBe(2);
  });

  test('a connector has its own, also with the credential of a binding', async () => {
    const operation = sampleOperation({ name: 'list', method: 'GET', path: '/listed', effect: 'read', audit: [] });
    const connector = { ...sampleConnector([operation], { hosts: [HOST] }), credential: CREDENTIAL };
    plane.policy.use([BINDING], [connector]);
    for (const path of ['/items', '/listed', '/items', '/listed']) await ask({ request: GET.replace('/items', path) });
    expect(requests.map((own) => own.map((request) => request.split(' ')[1]))).toEqual([
      ['/items', '/items'],
      ['/listed', '/listed'],
    ]);
  });
});

describe.skipIf(isHttp2())('no later tunnel gets a connection', () => {
  test('that had no credential', async () => {
    plane.policy.use([]);
    await ask();
    expect(plane.warm.size).toBe(0);
    await ask();
    expect(connections()).toBe(2);
  });

  test('of another session or scope', async () => {
    const ends = new OpenTunnels(Infinity);
    const scope: LiveSession = { ...plane.session, onTunnelsClosed: (close) => ends.onClosed(close) };
    plane.scopes.set('scope-token', scope);
    await ask();
    await ask({ token: 'scope-token' });
    await ask();
    await ask({ token: 'scope-token' });
    expect(requests.map(({ length }) => length)).toEqual([2, 2]);
  });

  test('to another host of the same binding', async () => {
    const other = 'other.example.test';
    await plane.upstream(other, listenAs(answering));
    plane.policy.use([{ ...BINDING, host: '*.example.test' }]);
    await ask();
    await ask({ host: other, request: GET.replace(HOST, other) });
    expect(requests.map(({ length }) => length)).toEqual([1, 1]);
  });

  test.each<[string, () => unknown]>([
    ['once the credential has another value', () => plane.credentials.set(CREDENTIAL, `${SECRET}-next`, '2')],
    ['once the policy has changed', () => plane.policy.use([BINDING])],
    ['once its binding was removed and added again', () => (plane.policy.use([]), plane.policy.use([BINDING]))],
    ['once its session has ended', () => plane.endSession()],
  ])('%s', async (_when, change) => {
    await ask();
    await change();
    await ask();
    expect(connections()).toBe(2);
  });

  test.each<[string, () => unknown]>([
    ['a change of the policy', () => plane.policy.use([])],
    ['a revocation', () => plane.policy.refuse('control_plane_unavailable')],
    ["the session's end", () => plane.endSession()],
  ])('and %s closes it at once', async (_what, end) => {
    await ask();
    const [upstream] = upstreams;
    if (upstream === undefined) throw new Error('nothing was dialled');
    const closed = once(upstream, 'close');
    expect(plane.warm.size).toBe(1);
    await end();
    expect(plane.warm.size).toBe(0);
    await closed;
  });

  test('whose reply was under way when the policy changed to and fro', async () => {
    const client = await plane.open(HOST);
    answer = () => 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n';
    client.write(GET);
    await readUntil(client, (got) => got.endsWith('\r\n\r\n'));
    plane.policy.use([structuredClone(BINDING)]);
    upstreams[0]?.write('done');
    await readUntil(client, (got) => got.endsWith('done'));
    client.end();
    await waitUntil(() => plane.openTunnels() === 0);
    expect(plane.warm.size).toBe(0);
  });
});

describe.skipIf(isHttp2())('a hostile or old upstream', () => {
  const REPLIES: readonly [string, string][] = [
    ['sends more than its reply', `${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!`],
    ['says that it closes', OK.replace('Content-Length', 'Connection: close\r\nContent-Length')],
    ['refuses with a challenge', OK.replace('200 OK', '401 Unauthorized')],
    ['names a challenge', OK.replace('Content-Length', 'WWW-Authenticate: Negotiate abc\r\nContent-Length')],
    ['keeps who has authenticated', OK.replace('Content-Length', 'Persistent-Auth: true\r\nContent-Length')],
  ];
  test.each(REPLIES)('that %s: the connection ends with its tunnel', async (_what, reply) => {
    answer = () => reply;
    await ask();
    expect(plane.warm.size).toBe(0);
    answer = () => OK;
    await ask();
    expect(connections()).toBe(2);
  });

  test.each(['NTLM TlRMTVNTUAAB', 'negotiate YII', '  Kerberos x'])(
    'that ties rights to the connection when a client sends %s: no other tunnel has them',
    async (value) => {
      const request = GET.replace('\r\n\r\n', `\r\nAuthorization: ${value}\r\n\r\n`);
      await ask({ request });
      await ask();
      expect(connections()).toBe(2);
    },
  );

  test('that sends a reply to nothing while the connection waits: nobody reads it', async () => {
    await ask();
    upstreams[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!');
    await waitUntil(() => plane.warm.size === 0);
    expect(await ask()).not.toContain('evil');
    expect(connections()).toBe(2);
  });

  test.each<[string, (upstream: TLSSocket) => unknown]>([
    ['finishes its side', (upstream) => upstream.end()],
    ['drops the connection', (upstream) => upstream.destroy()],
  ])('that %s while the connection waits: the next tunnel dials', async (_what, leave) => {
    await ask();
    for (const upstream of upstreams) leave(upstream);
    await waitUntil(() => plane.warm.size === 0);
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    expect(connections()).toBe(2);
  });

  test('that a client has half-closed: the connection is not kept', async () => {
    answer = () => 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
    const client = await plane.open(HOST);
    const reply = readUntil(client, (got) => got.endsWith('ok'));
    client.end(GET);
    await waitUntil(() => upstreams[0]?.readableEnded === true);
    upstreams[0]?.write('ok');
    await reply;
    await waitUntil(() => plane.openTunnels() === 0);
    expect(plane.warm.size).toBe(0);
  });

  test.each(onlyInHttp1([GET, POST]))(
    'that closes as it gets the next request: %j is never sent twice unless it may be',
    async (request) => {
      await ask();
      const seen: string[] = [];
      answer = (got) => {
        seen.push(got);
        if (connections() === 1) upstreams[0]?.destroy();
        return OK;
      };
      expect(await ask({ request })).toMatch(/^HTTP\/1\.1 200 /);
      // A request that may not be repeated has a connection of its own from the start.
      expect(seen).toHaveLength(request === GET ? 2 : 1);
      expect(connections()).toBe(2);
    },
  );
});

describe.skipIf(isHttp2())('a tunnel over HTTP/2', () => {
  let sessions: ServerHttp2Session[];
  let respond: (stream: ServerHttp2Stream, session: ServerHttp2Session) => void;

  beforeEach(async () => {
    sessions = [];
    respond = (stream) => {
      stream.respond({ ':status': 200 });
      stream.end('ok');
    };
    await plane.streamUpstream(HOST, (stream, _fields, session) => {
      if (!sessions.includes(session)) sessions.push(session);
      respond(stream, session);
    });
  });

  test('leaves its session to the next one', async () => {
    expect([await askOnce(), await askOnce(), await askOnce()]).toEqual([200, 200, 200]);
    expect(sessions).toHaveLength(1);
  });

  test('many one after the other leave no listener behind', async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', onWarning);
    for (let n = 0; n < 15; n += 1) await askOnce();
    process.off('warning', onWarning);
    expect([sessions.length, warnings]).toEqual([1, []]);
  });

  test.each<[string, () => unknown]>([
    ['another value of the credential', () => plane.credentials.set(CREDENTIAL, `${SECRET}-next`, '2')],
    ['a change of the policy', () => plane.policy.use([BINDING])],
    ["the session's end", () => plane.endSession()],
    ['a goaway', () => sessions[0]?.goaway()],
    ['an offer of another server', () => sessions[0]?.altsvc('h2=":8000"', `https://${HOST}`)],
    ['the end of the connection', () => sessions[0]?.destroy()],
  ])('does not after %s', async (what, change) => {
    await askOnce();
    expect(plane.warm.size).toBe(1);
    await change();
    if (!what.startsWith('another')) await waitUntil(() => plane.warm.size === 0);
    expect(await askOnce()).toBe(200);
    expect(sessions).toHaveLength(2);
  });

  test('does not if a reply was broken off, or the upstream speaks of authentication', async () => {
    respond = (stream) => {
      stream.respond({ ':status': 200 });
      stream.write('o', () => stream.destroy(new Error('broken off')));
    };
    await askOnce();
    expect(plane.warm.size).toBe(0);
    respond = (stream) => {
      stream.respond({ ':status': 200, 'www-authenticate': 'Negotiate abc' });
      stream.end('ok');
    };
    await askOnce();
    expect(plane.warm.size).toBe(0);
  });

  test('gives a request that may not be sent twice a session of its own', async () => {
    await askOnce();
    const seen: ServerHttp2Session[] = [];
    respond = (stream, session) => {
      seen.push(session);
      if (session === sessions[0]) return session.destroy();
      stream.respond({ ':status': 200 });
      stream.end('ok');
    };
    expect(await askOnce('POST')).toBe(200);
    expect(seen).toEqual([sessions[1]]);
  });
});
