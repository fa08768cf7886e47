import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, readUntil, startDataPlane, type DataPlane } from '../../sidecar/testing/data_plane.ts';
import { startRelay, type Relay } from './relay.ts';

const HOST = 'api.example.test';
const CONNECT = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`;
const OWN = 1000;

let plane: DataPlane;
let relay: Relay;
let peer: number | null;

beforeEach(async () => {
  plane = await startDataPlane();
  peer = OWN;
  relay = await startTestRelay(`http://ses_test:${plane.token}@127.0.0.1:${plane.port}`);
});

afterEach(async () => {
  await relay.close();
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

async function startTestRelay(proxyUrl: string): Promise<Relay> {
  const made = await startRelay({ proxyUrl, uid: OWN, peerUid: () => Promise.resolve(peer) });
  if (!made.ok) throw new Error(made.error.message);
  return made.value;
}

/** Sends text and gives everything that comes back until the connection ends. */
function exchange(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(relay.port, '127.0.0.1');
    let got = '';
    socket.on('data', (data) => (got += data.toString('latin1')));
    socket.once('close', () => resolve(got));
    socket.once('error', reject);
    socket.write(text, 'latin1');
  });
}

function firstData(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (data: Buffer) => resolve(data.toString('latin1')));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}

describe('a process of the same user', () => {
  test('gets a tunnel without sending credentials, and its requests are served', async () => {
    plane.credentials.set({ owner: 'personal', path: 'user/demo' }, 'a-secret-of-length');
    plane.policy.use([bearerBinding(HOST)]);
    let seen = '';
    await plane.upstream(
      HOST,
      createAnswering((request) => {
        seen = request;
        return 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
      }),
    );
    const socket = connect(relay.port, '127.0.0.1');
    socket.write(CONNECT);
    expect(await firstData(socket)).toMatch(/^HTTP\/1\.1 200 /);
    const tls = connectTls({ socket, servername: HOST, ca: plane.caPem });
    tls.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    expect(await readUntil(tls, (got) => got.endsWith('ok'))).toContain('200 OK');
    expect(seen).toContain('Authorization: Bearer a-secret-of-length');
    tls.destroy();
  });

  test('has its own credentials replaced with those of the session', async () => {
    const socket = connect(relay.port, '127.0.0.1');
    socket.write(CONNECT.replace('\r\n\r\n', '\r\nproxy-authorization: Basic d3Jvbmc6d3Jvbmc=\r\n\r\n'));
    expect(await firstData(socket)).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  test('cannot send a second request after a refused one on the same connection', async () => {
    const refused = CONNECT.replaceAll(':443', ':444');
    const got = await exchange(refused + CONNECT);
    expect(got).toMatch(/^HTTP\/1\.1 403 /);
    expect(got.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(plane.openTunnels()).toBe(0);
  });

  test('reaches the proxy, but not the local API on the same port', async () => {
    const got = await exchange('GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(got).toContain('non_connect_proxy_request');
    expect(got).not.toContain('local api');
  });

  test.each([
    ['a length', 'Content-Length: 5\r\n', 501],
    ['chunks', 'Transfer-Encoding: chunked\r\n', 501],
    ['a length that is none', 'Content-Length: x\r\n', 501],
    ['a WebSocket', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', 501],
    ['an upgrade to HTTP/2, which is not made', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n', 403],
    ['a length of 0', 'Content-Length: 0\r\n', 403],
    ['neither', '', 403],
  ])('gets an answer at once to a plain request with %s', async (_what, lines, status) => {
    const got = await exchange(`POST http://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`);
    expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(plane.audit.events).toHaveLength(status === 501 ? 0 : 1);
  });

  test('does not see the token in a refusal', async () => {
    const got = await exchange('GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n');
    expect(got).toMatch(/^HTTP\/1\.1 403 /);
    expect(got).not.toContain(plane.token);
  });
});

describe.each([
  ['another user', OWN + 1],
  ['root', 0],
  ['an unknown user', null],
])('a process of %s', (_who, uid) => {
  beforeEach(() => {
    peer = uid;
  });

  test('gets the proxy’s refusal, which is recorded', async () => {
    const got = await exchange(CONNECT);
    expect(got).toMatch(/^HTTP\/1\.1 407 /);
    expect(plane.openTunnels()).toBe(0);
    expect(plane.audit.events.map(({ data }) => data['svc.proxy.reason'])).toEqual(['proxy_authentication_required']);
  });

  test('is refused even if it sends credentials', async () => {
    const own = Buffer.from(`ses_test:${plane.token}`).toString('base64');
    const got = await exchange(CONNECT.replace('\r\n\r\n', `\r\nProxy-Authorization: Basic ${own}\r\n\r\n`));
    expect(got).toMatch(/^HTTP\/1\.1 407 /);
  });

  test('gets no answer to anything but CONNECT', async () => {
    expect(await exchange('GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('');
  });
});

test.each([
  ['no HTTP at all', '\x16\x03\x01\x02\x00\r\n\r\n'],
  ['a head without an end', `CONNECT ${'a'.repeat(20_000)}`],
])('drops a connection that sends %s', async (_what, text) => {
  expect(await exchange(text).catch(() => '')).toBe('');
});

test('drops a client when the proxy is gone', async () => {
  await relay.close();
  relay = await startTestRelay('http://ses_test:token@127.0.0.1:1');
  expect(await exchange(CONNECT).catch(() => '')).toBe('');
});

test('accepts no client and drops the connected ones once closed', async () => {
  const socket = connect(relay.port, '127.0.0.1');
  socket.write(CONNECT);
  await firstData(socket);
  const gone = new Promise((resolve) => socket.once('close', resolve));
  await relay.close();
  await gone;
  await expect(exchange(CONNECT)).rejects.toThrow('ECONNREFUSED');
});

test('is refused on a system without user ids', async () => {
  const made = await startRelay({ proxyUrl: 'http://a:b@127.0.0.1:1', uid: null });
  expect(made).toMatchObject({ ok: false, error: { reason: 'relay_unsupported' } });
});
