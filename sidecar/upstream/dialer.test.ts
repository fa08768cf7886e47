import { once } from 'node:events';
import type { Server } from 'node:net';
import { createServer, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTlsServer } from 'node:tls';
import type { TlsOptions } from 'node:tls';
import { afterEach, beforeAll, expect, test } from 'vitest';

import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { listen } from '../../machine/connection/listen.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { PresentedCertificate } from '../ports.ts';
import type { Authority } from '../tls/certificates.ts';
import { createAuthority, issueLeaf } from '../tls/certificates.ts';
import type { DialerOptions } from './dialer.ts';
import { createDialer, verifyPeer } from './dialer.ts';
import { TunnelLanes } from './lanes.ts';

const HOST = 'api.example.test';

let ca: Authority;
const servers: Server[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  ca = await createAuthority('upstreams', Date.now());
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

async function listenOn(server: Server): Promise<number> {
  servers.push(server);
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  return listen(server, 0, '127.0.0.1');
}

async function tlsUpstream(certified: string, options: TlsOptions = {}, authority = ca): Promise<number> {
  const leaf = await issueLeaf(authority, certified, Date.now());
  const server = createTlsServer({ key: leaf.keyPem, cert: leaf.certificatePem, ...options }, (socket) => {
    socket.on('error', () => undefined);
    socket.write(socket.isSessionReused() ? 'resumed' : 'new');
  });
  return listenOn(server);
}

function dialer(pinned: Record<string, number>, change: Partial<DialerOptions> = {}) {
  const pins = Object.entries(pinned).map(([host, port]) => [host, { address: '127.0.0.1', port }] as const);
  return createDialer({
    roots: [ca.certificatePem],
    pinned: new Map(pins),
    denyPrivate: false,
    timeoutSeconds: 5,
    limits: DEFAULT_LIMITS,
    ...change,
  });
}

test.each([
  ['for another name', async () => tlsUpstream('other.example.test')],
  ['for a parent name', async () => tlsUpstream('example.test')],
  ['of an unknown authority', async () => tlsUpstream(HOST, {}, await createAuthority('unknown', Date.now()))],
  ['that has expired', async () => tlsUpstream(HOST, await expiredCertificate())],
  ['over an outdated protocol', async () => tlsUpstream(HOST, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })],
])('refuses a certificate %s, every time', async (_name, upstream) => {
  const upstreams = dialer({ [HOST]: await upstream() });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expect(await upstreams.dial(HOST).connected).toMatchObject({ ok: false, error: { reason: 'upstream_tls_failed' } });
  }
});

async function expiredCertificate(): Promise<TlsOptions> {
  const leaf = await issueLeaf(ca, HOST, Date.now() - 90 * 24 * 3_600_000);
  return { key: leaf.keyPem, cert: leaf.certificatePem };
}

test("checks a pinned IP literal's certificate for the literal, not for the dialled address", async () => {
  const right = await tlsUpstream('203.0.113.7');
  const wrong = await tlsUpstream('127.0.0.1');
  const six = await tlsUpstream('[2001:db8::7]');
  const upstreams = dialer({ '203.0.113.7': right, '203.0.113.8': wrong, '[2001:db8::7]': six });
  for (const host of ['203.0.113.7', '[2001:db8::7]']) {
    const dialled = await upstreams.dial(host).connected;
    expect(dialled.ok).toBe(true);
    if (dialled.ok) dialled.value.destroy();
  }
  expect(await upstreams.dial('203.0.113.8').connected).toMatchObject({
    ok: false,
    error: { reason: 'upstream_tls_failed' },
  });
});

test('dials the port of the host, and what stands for one port does not stand for another', async () => {
  const port = await tlsUpstream(HOST);
  const upstreams = dialer({ [HOST]: port, [`${HOST}:8443`]: port, 'other.example.test:8443': port });
  for (const host of [HOST, `${HOST}:8443`]) {
    const dialled = await upstreams.dial(host).connected;
    expect(dialled.ok).toBe(true);
    if (dialled.ok) dialled.value.destroy();
  }
  const local = await tlsUpstream('127.0.0.1');
  const literal = await dialer({}).dial(`127.0.0.1:${local}`).connected;
  expect(literal.ok).toBe(true);
  if (literal.ok) literal.value.destroy();
  for (const host of ['other.example.test:8443', 'other.example.test', `${HOST}:9443`]) {
    expect((await upstreams.dial(host).connected).ok).toBe(false);
  }
});

test('refuses private addresses on other ports as on 443', async () => {
  const upstreams = dialer({}, { denyPrivate: true });
  for (const host of ['10.0.0.1:8443', '[::1]:8443', 'localhost:8443']) {
    for (const [publicOnly, reason] of [
      [false, 'upstream_unreachable'],
      [true, 'egress_address_not_allowed'],
    ] as const) {
      const refused = await upstreams.dial(host, publicOnly).connected;
      expect([host, refused.ok ? null : refused.error.reason]).toEqual([host, reason]);
    }
  }
});

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'resumes %s sessions of one host and never with another',
  async (version) => {
    const port = await tlsUpstream('*.example.test', { maxVersion: version, minVersion: version });
    const upstreams = dialer({ 'one.example.test': port, 'two.example.test': port });
    const greeting = async (host: string, ticketed = false): Promise<string> => {
      const dialled = await upstreams.dial(host).connected;
      if (!dialled.ok) throw new Error(dialled.error.message);
      const ticket = ticketed ? once(dialled.value.stream, 'session') : null;
      const text = String(await dialled.value.nextChunk());
      await ticket;
      dialled.value.destroy();
      return text;
    };
    expect([await greeting('one.example.test', version === 'TLSv1.3'), await greeting('one.example.test')]).toEqual([
      'new',
      'resumed',
    ]);
    expect(await greeting('two.example.test')).toBe('new');
  },
);

async function presented(change: Partial<PresentedCertificate> = {}): Promise<PresentedCertificate> {
  const { certificatePem: chain, keyPem } = await issueLeaf(ca, 'client.example.test', Date.now());
  const inForce = Object.assign(() => null, { onChanged: () => () => undefined });
  const named = { id: 'crt_1 1', reference: 'vault://user/certificate', version: '1' };
  return { ...named, chain, key: new Secret(keyPem), inForce, ...change };
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'resumes no %s session with a client certificate, and none of one without it',
  async (version) => {
    const asking = { requestCert: true, rejectUnauthorized: false };
    const port = await tlsUpstream(HOST, { maxVersion: version, minVersion: version, ...asking });
    const upstreams = dialer({ [HOST]: port });
    const certificate = await presented();
    const greeting = async (with_: PresentedCertificate | null, ticketed = false): Promise<string> => {
      const dialled = await upstreams.dial(HOST, false, with_).connected;
      if (!dialled.ok) throw new Error(dialled.error.message);
      const ticket = ticketed ? once(dialled.value.stream, 'session') : null;
      const text = String(await dialled.value.nextChunk());
      await ticket;
      dialled.value.destroy();
      return text;
    };
    const greetings = [await greeting(certificate), await greeting(null, version === 'TLSv1.3'), await greeting(null)];
    expect([...greetings, await greeting(certificate)]).toEqual(['new', 'new', 'resumed', 'new']);
  },
);

test('shows no client certificate over TLS 1.3 to a server that is not the host', async () => {
  const clients: string[] = [];
  const leaf = await issueLeaf(ca, 'other.example.test', Date.now());
  const asking = { requestCert: true, rejectUnauthorized: false };
  const server = createTlsServer({ key: leaf.keyPem, cert: leaf.certificatePem, ...asking }, (socket) =>
    clients.push(String(socket.getPeerCertificate().subject.CN)),
  );
  const port = await listenOn(server);
  const failed = new Promise((resolve) => server.once('tlsClientError', resolve));
  const refused = await dialer({ [HOST]: port }).dial(HOST, false, await presented()).connected;
  expect(refused).toMatchObject({ error: { reason: 'upstream_tls_failed' } });
  await failed;
  expect(clients).toEqual([]);
});

test('refuses a client certificate that the TLS library does not take, and tells nothing of its key', async () => {
  const port = await tlsUpstream(HOST);
  const certificate = await presented({ chain: 'no certificate', key: new Secret('planted-key') });
  for (const dial of [
    dialer({ [HOST]: port }).dial(HOST, false, certificate),
    dialer({ [HOST]: port }).dialOffering(['h2'], HOST, false, certificate),
  ]) {
    const refused = await dial.connected;
    expect(refused).toMatchObject({ ok: false, error: { reason: 'credential_unavailable' } });
    expect(JSON.stringify(refused)).not.toContain('planted-key');
  }
});

test('refuses private addresses if told to: pinned, literal and resolved', async () => {
  const port = await tlsUpstream(HOST);
  const upstreams = dialer({ [HOST]: port }, { denyPrivate: true });
  for (const host of [HOST, '10.0.0.1', '[::1]', '[::ffff:7f00:1]', 'localhost']) {
    expect(await upstreams.dial(host).connected).toMatchObject({
      ok: false,
      error: { reason: 'upstream_unreachable' },
    });
  }
  const refused = await upstreams.dial('localhost').connected;
  expect(refused.ok ? '' : refused.error.message).toContain('private address');
});

test('dials only public addresses if told to: no private one, none of this machine, by literal or name', async () => {
  const upstreams = dialer({});
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const literals = own.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address));
  for (const host of ['localhost', '10.0.0.1', '0.0.0.0', '[::]', '[::1]', '[::ffff:7f00:1]', ...literals]) {
    const refused = await upstreams.dial(host, true).connected;
    expect([host, refused.ok ? null : refused.error.reason]).toEqual([host, 'egress_address_not_allowed']);
  }
});

test('still dials where --resolve points: the setting names the host', async () => {
  const port = await tlsUpstream(HOST);
  const dialled = await dialer({ [HOST]: port }).dial(HOST, true).connected;
  expect(dialled.ok).toBe(true);
});

test('allows private addresses by default', async () => {
  const port = await tlsUpstream(HOST);
  const dialled = await dialer({ [HOST]: port }).dial(HOST).connected;
  expect(dialled.ok).toBe(true);
});

test.each([
  ['refuses the connection', null],
  ['closes at once', (socket: Socket) => socket.end()],
  ['resets at once', (socket: Socket) => socket.resetAndDestroy()],
  ['speaks no TLS', (socket: Socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('refuses, and survives, an upstream that %s', async (_name, handler) => {
  const server = createServer((socket) => handler?.(socket));
  const port = await listenOn(server);
  if (handler === null) await new Promise((resolve) => server.close(resolve));
  const dialled = await dialer({ [HOST]: port }).dial(HOST).connected;
  expect(dialled.ok ? '' : dialled.error.reason).toMatch(/^upstream_(unreachable|tls_failed)$/);
});

test('gives up on an upstream that sends its handshake too slowly', async () => {
  const dripping = createServer((socket) => {
    const drip = setInterval(() => socket.write(Buffer.from([0x16])), 50);
    socket.once('close', () => clearInterval(drip));
    socket.write(Buffer.from([0x16, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xf0]));
  });
  const port = await listenOn(dripping);
  const dialled = await dialer({ [HOST]: port }, { timeoutSeconds: 0.2 }).dial(HOST).connected;
  expect(dialled).toMatchObject({ ok: false, error: { reason: 'upstream_unreachable' } });
});

test('lanes keep one connection each, and drop one that sent data or ended while idle', async () => {
  const accepted: Socket[] = [];
  const leaf = await issueLeaf(ca, HOST, Date.now());
  const server = createTlsServer({ key: leaf.keyPem, cert: leaf.certificatePem }, (socket) => accepted.push(socket));
  const lanes = new TunnelLanes({
    dialer: dialer({ [HOST]: await listenOn(server) }),
    host: HOST,
    isPublicOnly: () => false,
  });
  const first = await lanes.take('a', null, true);
  if (!first.ok) throw new Error(first.error.message);
  lanes.give('a', first.value.connection);
  expect(await lanes.take('b', null, true)).toMatchObject({ value: { reused: false } });
  const again = await lanes.take('a', null, true);
  expect(again.ok && again.value.connection).toBe(first.value.connection);
  lanes.give('a', first.value.connection);
  accepted[0]?.write('unasked');
  await once(first.value.connection.stream, 'data');
  expect(await lanes.take('a', null, true)).toMatchObject({ value: { reused: false } });
  expect(first.value.connection.stream.destroyed).toBe(true);
});

test('closed lanes drop every connection, stop dialling, and dial no more', async () => {
  const silent = createServer();
  const reached = once(silent, 'connection');
  const lanes = new TunnelLanes({
    dialer: dialer({ [HOST]: await listenOn(silent) }),
    host: HOST,
    isPublicOnly: () => false,
  });
  const taken = lanes.take('', null, true);
  await reached;
  lanes.close();
  expect(await taken).toMatchObject({ ok: false, error: { reason: 'upstream_unreachable' } });
  expect(await lanes.dial('', null)).toMatchObject({ ok: false });
});

test('a verified connection makes no error when it ends', async () => {
  const socket = new Socket();
  const before = socket.listenerCount('close');
  const verified = verifyPeer(socket, 10, 'connect');
  socket.emit('connect');
  expect(await verified).toBeNull();
  expect(socket.listenerCount('close')).toBe(before);
  socket.destroy();
});
