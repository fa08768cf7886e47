import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err } from '../../shared/model/result.ts';
import type { LiveSession, SessionLogin } from '../ports.ts';
import { allowedHosts } from '../../shared/resolve/admitted_host.ts';
import { createAnswering, type DataPlane, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'pinned.example.test';
const OTHER = 'other.example.test';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';
const TOKEN = 'another-token';
const SWAPPED = { mechanism: 'sentinel-swap', sentinel: 'a-placeholder-of-a-test' } as const;

let plane: DataPlane;
let seen: string[];
let sockets: Socket[];

beforeEach(async () => {
  plane = await startDataPlane();
  plane.policy.use([], [], [HOST]);
  seen = [];
  sockets = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
});

afterEach(async () => {
  expect(plane.errors).toEqual([]);
  for (const socket of sockets) socket.destroy();
  await plane.stop();
});

/** Sends a CONNECT; resolves with the socket and the reply's text so far. */
async function connect(host: string, token = plane.token): Promise<{ socket: Socket; reply: string }> {
  const basic = Buffer.from(`ses_test:${token}`).toString('base64');
  const socket = connectTcp({ port: plane.port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`);
  const reply = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString('latin1'))));
  return { socket, reply };
}

/** A client that trusts only the upstream's own root, as one that pins a certificate. */
function startTls(socket: Socket, servername: string): TLSSocket {
  const tls = connectTls({ socket, servername, ca: plane.upstreamCaPem, checkServerIdentity: () => undefined });
  tls.on('error', () => undefined);
  return tls;
}

async function openPinned(token = plane.token): Promise<TLSSocket> {
  const { socket, reply } = await connect(HOST, token);
  expect(reply).toBe('HTTP/1.1 200 Connection Established\r\n\r\n');
  const tls = startTls(socket, HOST);
  await new Promise<void>((resolve, reject) => tls.once('secureConnect', resolve).once('error', reject));
  return tls;
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['error', 'end', 'close']) socket.on(event, () => resolve());
    socket.resume();
    if (socket.closed) resolve();
  });
}

async function ask(tls: TLSSocket): Promise<void> {
  tls.write(`GET /secret-path HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  expect(await readUntil(tls, (got) => got.endsWith('hi'))).toBe(REPLY);
}

/** The ClientHello of a client for this host. */
function helloFor(servername: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const written = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => (resolve(chunk), done()),
    });
    connectTls({ socket: written, servername }).on('error', () => undefined);
  });
}

function connectorAt(host: string): InstalledConnector {
  const connector = sampleConnector([sampleOperation({ name: 'get', method: 'GET', path: '/x' })]);
  return { ...connector, spec: { ...connector.spec, hosts: [host] } };
}

const refuseLogin = () => err(refusal('login_not_accepted', 'not in this test'));
const LOGIN: SessionLogin = {
  host: HOST,
  path: '/token',
  clientId: 'a-client',
  grants: ['authorization_code'],
  placeholder: 'a-placeholder',
  state: 'waiting',
  account: null,
  begin: refuseLogin,
  end: () => undefined,
  takeForAccount: refuseLogin,
  nameAccount: () => undefined,
  withhold: () => undefined,
  hold: () => Promise.resolve(refuseLogin()),
};

const reasons = (): unknown[] => plane.audit.events.map(({ data }) => data['svc.proxy.reason']);

async function eventually(reached: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(reached()).toBe(true), { timeout: 3000, interval: 5 });
}

async function allClosed(): Promise<void> {
  await eventually(() => plane.openTunnels() === 0);
}

async function replyTo(session: Partial<LiveSession>): Promise<string> {
  plane.scopes.set(TOKEN, { ...plane.session, ...session });
  const { socket, reply } = await connect(HOST, TOKEN);
  socket.end();
  return reply;
}

async function refuseCertificate(): Promise<void> {
  const { socket } = await connect(HOST);
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => startTls(socket, HOST).once('error', resolve));
  expect(error.code).toMatch(/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/);
  await allClosed();
}

test('a client that pins the certificate of a listed host reaches it, and the events have only the host and byte counts', async () => {
  const tls = await openPinned();
  expect(plane.audit.events).toHaveLength(1);
  await ask(tls);
  tls.end();
  await allClosed();
  const common = {
    'svc.proxy.source': 'transparent_connect_tls',
    'svc.proxy.mediation': 'passthrough',
    'svc.proxy.method': 'CONNECT',
    'svc.proxy.upstream.host': HOST,
  };
  expect(plane.audit.events).toEqual([
    {
      type: 'sandbox.proxy.tunnelled',
      session_id: 'ses_test',
      actor: 'session',
      data: { ...common, 'svc.proxy.reason': 'tunnel_opened' },
    },
    {
      type: 'sandbox.proxy.tunnelled',
      session_id: 'ses_test',
      actor: 'session',
      data: {
        ...common,
        'svc.proxy.reason': 'tunnel_closed',
        'svc.proxy.bytes.sent': expect.any(Number),
        'svc.proxy.bytes.received': expect.any(Number),
      },
    },
  ]);
  const { data } = plane.audit.events[1]!;
  expect(data['svc.proxy.bytes.sent']).toBeGreaterThan(100);
  expect(data['svc.proxy.bytes.received']).toBeGreaterThan(REPLY.length);
  expect(JSON.stringify(plane.audit.events)).not.toContain('secret-path');
});

test('many bytes pass in both directions, and none is lost at the end', async () => {
  const size = 3_000_000;
  await plane.upstream(HOST, (socket) => {
    let got = 0;
    socket.on('data', (data: Buffer) => (got += data.length));
    socket.on('end', () => socket.end(Buffer.alloc(got, 'b')));
  });
  const tls = await openPinned();
  tls.end(Buffer.alloc(size, 'a'));
  expect((await readUntil(tls, () => false)).length).toBe(size);
  await allClosed();
  const { data } = plane.audit.events.at(-1)!;
  expect(data['svc.proxy.bytes.sent']).toBeGreaterThan(size);
  expect(data['svc.proxy.bytes.received']).toBeGreaterThan(size);
});

test('no credential replaces a placeholder, or is added', async () => {
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, 'a-secret-of-a-test');
  plane.policy.use([{ ...bearerBinding(OTHER), emit: SWAPPED }], [], [HOST]);
  const tls = await openPinned();
  tls.write(`GET / HTTP/1.1\r\nHost: ${OTHER}\r\nAuthorization: Bearer ${SWAPPED.sentinel}\r\n\r\n`);
  expect(await readUntil(tls, (got) => got.endsWith('hi'))).toBe(REPLY);
  expect(seen.join('')).toContain(`Bearer ${SWAPPED.sentinel}`);
  expect(seen.join('')).not.toContain('a-secret-of-a-test');
});

describe('the handshake', () => {
  test('must name the host of the tunnel: another name is refused, and no byte goes up', async () => {
    const { socket } = await connect(HOST);
    const tls = startTls(socket, OTHER);
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => tls.once('error', resolve));
    expect(error.code).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
    await allClosed();
    expect(reasons()).toEqual(['authority_mismatch']);
    expect(seen).toEqual([]);
  });

  test('without a name is refused', async () => {
    const { socket } = await connect(HOST);
    await closed(startTls(socket, ''));
    await allClosed();
    expect(reasons()).toEqual(['authority_mismatch']);
  });

  test('in capital letters is for the same host', async () => {
    const { socket } = await connect(HOST);
    const tls = startTls(socket, HOST.toUpperCase());
    await new Promise<void>((resolve, reject) => tls.once('secureConnect', resolve).once('error', reject));
    await ask(tls);
    expect(seen).toHaveLength(1);
  });

  test.each([
    ['a plain request', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.6\r\n')],
    ['zeros', Buffer.alloc(600)],
  ])('is needed: %s is refused, and no byte goes up', async (_what, bytes) => {
    const { socket } = await connect(HOST);
    socket.end(bytes);
    await closed(socket);
    await allClosed();
    expect(reasons()).toEqual(['invalid_request']);
    expect(seen).toEqual([]);
  });

  test('that is not finished is recorded as a failed one', async () => {
    const { socket } = await connect(HOST);
    socket.end(Buffer.from([22, 3, 1, 2, 0, 1]));
    await closed(socket);
    await allClosed();
    expect(reasons()).toEqual(['client_tls_failed']);
  });
});

describe('a listed host is intercepted nevertheless', () => {
  test.each([
    ['a binding', [bearerBinding(HOST)], [HOST]],
    ['a binding for a wildcard above it', [bearerBinding('*.example.test')], [HOST]],
    ['a binding below a listed wildcard', [bearerBinding(HOST)], ['*.example.test']],
  ])('if it has %s', async (_what, bindings, listed) => {
    plane.credentials.set({ owner: 'personal', path: 'user/demo' }, 'a-secret-of-a-test');
    plane.policy.use(bindings, [], listed);
    const client = await plane.open(HOST);
    await ask(client);
    expect(seen.join('')).toContain('Bearer a-secret-of-a-test');
    expect(plane.audit.events.map(({ type }) => type)).toEqual(['sandbox.proxy.binding_injected']);
  });

  test.each([
    ['a connector', HOST],
    ['a connector below a listed wildcard', '*.example.test'],
  ])('if it has %s, also for a request that is no operation', async (_what, listed) => {
    plane.policy.use([], [connectorAt(HOST)], [listed]);
    await ask(await plane.open(HOST));
    expect(plane.audit.events.map(({ type }) => type)).toEqual(['sandbox.proxy.passthrough']);
  });

  const account = { host: HOST, path: '/graphql', document: 'query{viewer{login}}' };

  test.each<[string, SessionLogin]>([
    ['at it', LOGIN],
    ['whose account is asked for at it', { ...LOGIN, host: OTHER, account }],
  ])('in the session of a login %s', async (_what, login) => {
    plane.scopes.set(TOKEN, { ...plane.session, login });
    const { socket } = await connect(HOST, TOKEN);
    const tls = startTls(socket, HOST);
    await closed(tls);
    expect(plane.audit.events.map(({ type }) => type)).not.toContain('sandbox.proxy.tunnelled');
  });
});

test.each([
  ['gets a binding', () => plane.policy.use([bearerBinding(HOST)], [], [HOST])],
  ['gets a binding for a wildcard above it', () => plane.policy.use([bearerBinding('*.example.test')], [], [HOST])],
  ['gets a connector', () => plane.policy.use([], [connectorAt(HOST)], [HOST])],
  ['leaves the list', () => plane.policy.use([], [], [OTHER])],
  ['has no policy any more', () => plane.policy.refuse('control_plane_unavailable')],
])('an open tunnel closes when its host %s', async (_what, change) => {
  const tls = await openPinned();
  await ask(tls);
  change();
  await closed(tls);
  await allClosed();
  expect(reasons()).toEqual(['tunnel_opened', 'tunnel_closed']);
});

test('an open tunnel closes with its session, on both sides', async () => {
  const ends: (() => unknown)[] = [];
  const left = Promise.withResolvers<void>();
  await plane.upstream(HOST, (socket) => {
    socket.on('data', () => socket.write(REPLY));
    void closed(socket).then(left.resolve);
  });
  const openTunnel: LiveSession['openTunnel'] = (end) => {
    ends.push(end);
    return plane.session.openTunnel(end);
  };
  plane.scopes.set(TOKEN, { ...plane.session, openTunnel });
  const tls = await openPinned(TOKEN);
  await ask(tls);
  for (const end of ends) end();
  await Promise.all([closed(tls), left.promise]);
  await allClosed();
  expect(reasons()).toEqual(['tunnel_opened', 'tunnel_closed']);
});

test('an open tunnel closes with its session at once, also if the host reads nothing of what the client sends', async () => {
  const ends: (() => unknown)[] = [];
  await plane.upstream(HOST, (socket) => void socket.pause());
  const openTunnel: LiveSession['openTunnel'] = (end) => {
    ends.push(end);
    return plane.session.openTunnel(end);
  };
  plane.scopes.set(TOKEN, { ...plane.session, openTunnel });
  const tls = await openPinned(TOKEN);
  let isTaken = true;
  tls.on('drain', () => (isTaken = true));
  // Until every buffer on the way is full.
  for (; isTaken; await new Promise((resolve) => setTimeout(resolve, 200))) {
    isTaken = tls.write(Buffer.alloc(2 ** 23));
  }
  for (const end of ends) end();
  await allClosed();
  expect(reasons()).toEqual(['tunnel_opened', 'tunnel_closed']);
});

test('an open tunnel stays open when another host gets a binding', async () => {
  const tls = await openPinned();
  plane.policy.use([bearerBinding(OTHER)], [], [HOST]);
  await ask(tls);
  expect(plane.openTunnels()).toBe(1);
});

describe('refused before anything is dialled', () => {
  const step = { stepId: 'fetch', includes: () => true };

  test("in a plan's step, also if the lock has the host", async () => {
    expect(await replyTo({ reach: step })).toMatch(
      /^HTTP\/1\.1 403 .*"code":"step_scope_host_denied".*svc tunnel list/s,
    );
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.trust_denied', data: { 'svc.proxy.reason': 'step_scope_host_denied' } },
    ]);
  });

  test('in a sealed session that reaches every public host and does not name this one', async () => {
    expect(await replyTo({ sealed: true })).toMatch(/^HTTP\/1\.1 403 .*"code":"egress_host_not_allowed".*--allow/s);
  });

  test('in a session with a list that does not have it', async () => {
    expect(await replyTo({ sealed: true, allowed: allowedHosts([OTHER], []) })).toMatch(/egress_host_not_allowed/);
  });

  test('when the audit log is full before the hello arrives', async () => {
    const { socket, reply } = await connect(HOST);
    expect(reply).toContain(' 200 ');
    Object.assign(plane.audit, { exhausted: true });
    socket.write(await helloFor(HOST));
    await closed(socket);
    await allClosed();
    Object.assign(plane.audit, { exhausted: false });
    const refused = plane.metrics.counts.get('svc_proxy_refusals_total{reason="audit_unavailable"}');
    expect([refused, reasons()]).toEqual([1, []]);
  });

  test('when the audit log is full', async () => {
    Object.assign(plane.audit, { exhausted: true });
    expect(await replyTo({})).toMatch(/^HTTP\/1\.1 503 .*"code":"audit_unavailable"/s);
    Object.assign(plane.audit, { exhausted: false });
  });

  afterEach(async () => {
    await allClosed();
    expect(seen).toEqual([]);
  });
});

test.each<[string, Partial<LiveSession>]>([
  ['on its list', { sealed: true, allowed: allowedHosts([HOST], []) }],
  ['by name', { sealed: true, named: new Set([HOST]) }],
])('a sealed session that has the host %s reaches it', async (_what, change) => {
  plane.scopes.set(TOKEN, { ...plane.session, ...change });
  await ask(await openPinned(TOKEN));
  expect(reasons()).toEqual(['tunnel_opened']);
});

test('a host that cannot be reached is answered before the tunnel is open', async () => {
  const { reply } = await (plane.policy.use([], [], ['gone.invalid']), connect('gone.invalid'));
  expect(reply).toMatch(/^HTTP\/1\.1 502 .*"code":"upstream_unreachable"/s);
  expect(reasons()).toEqual(['upstream_unreachable']);
});

describe('a client that refuses the certificate', () => {
  test('is recorded as one, at a host without a binding', async () => {
    plane.policy.use([]);
    await refuseCertificate();
    expect(reasons()).toEqual(['client_refused_certificate']);
  });

  test('is recorded as a failed handshake at a bound host, which is not carried unread', async () => {
    plane.policy.use([bearerBinding(HOST)]);
    await refuseCertificate();
    expect(reasons()).toEqual(['client_tls_failed']);
  });

  test('is recorded as a failed handshake at a host with a client certificate, which is not carried unread either', async () => {
    const credential = { owner: 'personal', path: 'user/certificate' } as const;
    plane.policy.use([], [], [], [{ id: 'crt_1', host: HOST, credential }]);
    await refuseCertificate();
    expect(reasons()).toEqual(['client_tls_failed']);
  });

  test('is recorded as one also if it only closes after the certificate', async () => {
    plane.policy.use([]);
    const { socket } = await connect(HOST);
    socket.write(await helloFor(HOST));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    await allClosed();
    expect(reasons()).toEqual(['client_refused_certificate']);
  });
});

test('an idle tunnel is closed, and counts as one of the session until then', async () => {
  await plane.stop();
  plane = await startDataPlane({ idleTunnelSeconds: 0.2, maxTunnelsPerSession: 1 });
  plane.policy.use([], [], [HOST]);
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
  );
  const tls = await openPinned();
  expect((await connect(HOST)).reply).toMatch(/^HTTP\/1\.1 429 .*too_many_tunnels/s);
  await closed(tls);
  await allClosed();
  expect(reasons()).toEqual(['tunnel_opened', 'too_many_tunnels', 'tunnel_closed']);
});
