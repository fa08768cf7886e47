import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { allowedHosts } from '../../shared/resolve/admitted_host.ts';
import { StepScope } from '../session/step_scope.ts';
import { tokenHash } from '../session/token.ts';
import { createAnswering, type DataPlane, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'deb.example.test';
const OTHER = 'intranet.example.test';
const SECRET = 'planted-secret-0123456789';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';

let plane: DataPlane;
let seen: string[];

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  seen = [];
  await plane.plainUpstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  await plane.plainUpstream(
    OTHER,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  allow([HOST]);
});

afterEach(async () => {
  expect(plane.errors).toEqual([]);
  expect(plane.credentials.asked).toEqual([]);
  await plane.stop();
});

function allow(hosts: readonly string[], named: readonly string[] = []): void {
  Object.assign(plane.session, { plainHttp: { allowed: allowedHosts(hosts, named), named: new Set(named) } });
}

function login(token = plane.token): string {
  return `Proxy-Authorization: Basic ${Buffer.from(`ses_test:${token}`).toString('base64')}\r\n`;
}

function get(url: string, { lines = '', host = HOST, token = plane.token } = {}): string {
  return `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n${login(token)}${lines}\r\n`;
}

/** Sends requests in one connection and reads so many replies, or until the connection ends. */
function ask(requests: string, replies = 1): Promise<string> {
  return plane.raw(requests, (got) => got.split(REPLY).length > replies);
}

describe('a plain request to a host that the session allows', () => {
  test('is forwarded as the host receives it, byte for byte but for the proxy', async () => {
    const lines = 'X-A:  1\r\nx-a:\r\nAuthorization: Bearer its-own\r\nCookie: \xe4\r\n';
    expect(await ask(get(`http://${HOST}/dists/a%2fb?x=http://y`, { lines }))).toBe(REPLY);
    expect(seen).toEqual([`GET /dists/a%2fb?x=http://y HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`]);
  });

  test('is recorded as passthrough with method, host, path and status', async () => {
    await ask(get(`HTTP://${HOST.toUpperCase()}:80?secret=1`, { host: `${HOST}:80` }));
    expect(seen).toEqual([`GET /?secret=1 HTTP/1.1\r\nHost: ${HOST}:80\r\n\r\n`]);
    expect(plane.audit.events).toEqual([
      {
        type: 'sandbox.proxy.passthrough',
        session_id: 'ses_test',
        actor: 'session',
        data: {
          'svc.proxy.source': 'transparent_plain_http',
          'svc.proxy.mediation': 'passthrough',
          'svc.proxy.method': 'GET',
          'svc.proxy.upstream.host': HOST,
          'svc.proxy.upstream.path': '/',
          'svc.proxy.upstream.status': 200,
        },
      },
    ]);
  });

  test('has a body, and requests follow each other on the same connection', async () => {
    const post = `POST http://${HOST}/a HTTP/1.1\r\nHost: ${HOST}\r\n${login()}Content-Length: 3\r\n\r\nabc`;
    expect(await ask(post + get(`http://${HOST}/b`), 2)).toBe(REPLY + REPLY);
    expect(seen.map((request) => request.replace(/ HTTP[^]*\r\n\r\n/, ' '))).toEqual(['POST /a abc', 'GET /b ']);
    await vi.waitFor(() => expect(plane.openTunnels()).toBe(0));
  });

  test('may follow an empty line, whichever host it is for', async () => {
    allow([HOST, OTHER]);
    const urls =
      get(`http://${HOST}/a`) + '\r\n' + get(`http://${HOST}/b`) + '\r\n' + get(`http://${OTHER}/c`, { host: OTHER });
    expect(await ask(urls, 3)).toBe(REPLY + REPLY + REPLY);
    expect(seen).toHaveLength(3);
  });

  test('may be for another allowed host than the one before it on the same connection', async () => {
    allow([HOST, OTHER]);
    const urls = get(`http://${HOST}/a`) + get(`http://${OTHER}/b`, { host: OTHER }) + get(`http://${HOST}/c`);
    expect(await ask(urls, 3)).toBe(REPLY + REPLY + REPLY);
    expect(seen.map((request) => /\/\w.*\r\nHost: .*/.exec(request)?.[0])).toEqual([
      `/a HTTP/1.1\r\nHost: ${HOST}`,
      `/b HTTP/1.1\r\nHost: ${OTHER}`,
      `/c HTTP/1.1\r\nHost: ${HOST}`,
    ]);
  });

  test('asks for no upgrade but a WebSocket’s', async () => {
    await ask(
      get(`http://${HOST}/`, {
        lines: 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n',
      }),
    );
    expect(seen).toEqual([`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`]);
  });
});

const refusedWith = (code: string): object => ({ data: { 'svc.proxy.reason': code } });

describe('a plain request is refused', () => {
  test('to a host that is not allowed for it, with the option that allows it, also where https is allowed', async () => {
    Object.assign(plane.session, { allowed: allowedHosts([OTHER], [OTHER]), named: new Set([OTHER]) });
    const got = await plane.raw(get(`http://${OTHER}/a`, { host: OTHER }));
    expect(got).toMatch(/^HTTP\/1\.1 403 .*non_connect_proxy_request/s);
    expect(got).toContain(`--plain-http ${OTHER}`);
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.rejected', data: { 'svc.proxy.upstream.host': OTHER } },
    ]);
    expect(seen).toEqual([]);
  });

  test('also if an allowed one came before it on the connection', async () => {
    const got = await plane.raw(get(`http://${HOST}/a`) + get(`http://${OTHER}/b`, { host: OTHER }));
    expect(got.startsWith(REPLY)).toBe(true);
    expect(got.slice(REPLY.length)).toMatch(/^HTTP\/1\.1 403 .*non_connect_proxy_request/s);
    expect(seen).toHaveLength(1);
  });

  test.each([
    ['no session', ''],
    ['another token', `Proxy-Authorization: Basic ${Buffer.from('ses_test:wrong').toString('base64')}\r\n`],
  ])('with %s, also if one with the session came before it on the connection', async (_name, line) => {
    const second = `GET http://${HOST}/b HTTP/1.1\r\nHost: ${HOST}\r\n${line}\r\n`;
    const got = await plane.raw(get(`http://${HOST}/a`) + second, (text) => text.includes('407'));
    expect(got.slice(REPLY.length)).toMatch(/^HTTP\/1\.1 407 /);
    expect(seen).toHaveLength(1);
  });

  test.each([
    ['a binding', () => plane.policy.use([bearerBinding(HOST)])],
    ['a binding of a wildcard', () => plane.policy.use([bearerBinding('*.example.test')])],
    ['a connector', () => plane.policy.use([], [sampleConnector([sampleOperation()], { hosts: [HOST] })])],
    ['a login under way', () => Object.assign(plane.session, { login: { host: HOST, path: '/token' } })],
    [
      'a login that asks for its account there',
      () => Object.assign(plane.session, { login: { host: 'auth.example.test', account: { host: HOST } } }),
    ],
  ])('to a host that has %s, whatever the session allows', async (_name, bind) => {
    allow([HOST], [HOST]);
    bind();
    const got = await plane.raw(get(`http://${HOST}/a`), (text) => text.endsWith('}\n') || text.endsWith('}'));
    expect(got).toMatch(/^HTTP\/1\.1 403 .*plain_http_bound_host/s);
    expect(plane.audit.events).toMatchObject([refusedWith('plain_http_bound_host')]);
    expect(seen).toEqual([]);
  });

  test('from the moment that the host is bound, also on a connection that served it before', async () => {
    await plane.plainUpstream(
      HOST,
      createAnswering((request) => {
        seen.push(request);
        plane.policy.use([bearerBinding(HOST)]);
        return REPLY;
      }),
    );
    const got = await plane.raw(get(`http://${HOST}/a`) + get(`http://${HOST}/b`), (text) => text.includes('}'));
    expect(got.slice(REPLY.length)).toMatch(/^HTTP\/1\.1 403 .*plain_http_bound_host/s);
    expect(seen).toHaveLength(1);
  });

  test('without a policy, because then nobody knows whether the host is bound', async () => {
    plane.policy.refuse('snapshot_expired');
    expect(await plane.raw(get(`http://${HOST}/a`), (text) => text.includes('}'))).toMatch(
      /^HTTP\/1\.1 503 .*snapshot_expired/s,
    );
    expect(seen).toEqual([]);
  });

  test('to another port than 80', async () => {
    const got = await plane.raw(get(`http://${HOST}:8080/a`, { host: `${HOST}:8080` }));
    expect(got).toMatch(/^HTTP\/1\.1 403 .*connect_port_not_allowed/s);
  });

  test.each([
    ['names another host in its Host header', () => get(`http://${HOST}/`, { host: OTHER }), 421, 'authority_mismatch'],
    ['names another port there', () => get(`http://${HOST}/`, { host: `${HOST}:8080` }), 421, 'authority_mismatch'],
    ['has two Host headers', () => get(`http://${HOST}/`, { lines: `Host: ${HOST}\r\n` }), 400, 'invalid_request'],
    [
      'has two lengths',
      () => get(`http://${HOST}/`, { lines: 'Content-Length: 1\r\nContent-Length: 2\r\n' }),
      400,
      'invalid_request',
    ],
    [
      'has a length and chunks',
      () => get(`http://${HOST}/`, { lines: 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n' }),
      400,
      'invalid_request',
    ],
    ['has a user name in its URL', () => get(`http://user@${HOST}/`), 400, 'invalid_request'],
  ])('if it %s', async (_name, request, status, code) => {
    const got = await plane.raw(request(), (text) => text.includes('}'));
    expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*${code}`, 's'));
    expect(seen).toEqual([]);
    expect(plane.audit.events).toMatchObject([refusedWith(code)]);
  });

  test('to a private address', async () => {
    allow(['10.0.0.1']);
    const got = await plane.raw(get('http://10.0.0.1/', { host: '10.0.0.1' }), (text) => text.includes('}'));
    expect(got).toMatch(/^HTTP\/1\.1 403 .*passthrough_target_not_allowed/s);
  });

  test('in a step of a plan', async () => {
    const scope = new StepScope({
      scopeId: 'scp_1',
      step: { stepId: 'fetch', effect: 'read', hosts: [HOST], timeoutSeconds: 900, scopes: [], choice: null },
      session: plane.session,
      tokenHash: tokenHash('scope-token'),
      expiresAt: Number.POSITIVE_INFINITY,
    });
    plane.scopes.set('scope-token', Object.assign(scope, { plainHttp: plane.session.plainHttp ?? null }));
    const got = await plane.raw(get(`http://${HOST}/`, { token: 'scope-token' }));
    await scope.end();
    expect(got).toMatch(/^HTTP\/1\.1 403 .*non_connect_proxy_request/s);
    expect(got).not.toContain('--plain-http');
    expect(seen).toEqual([]);
  });

  test('beyond the tunnels that the session may have', async () => {
    Object.assign(plane.session, { openTunnel: () => null });
    const got = await plane.raw(get(`http://${HOST}/`));
    expect(got).toMatch(/^HTTP\/1\.1 429 .*too_many_tunnels/s);
  });
});

describe('in a sealed session', () => {
  const LOCAL = 'localhost';

  test('a host that leads to this machine is refused unless it was typed for the session', async () => {
    Object.assign(plane.session, { sealed: true });
    allow([LOCAL]);
    const got = await plane.raw(get(`http://${LOCAL}/`, { host: LOCAL }), (text) => text.includes('}'));
    expect(got).toMatch(/^HTTP\/1\.1 403 .*egress_address_not_allowed/s);
    expect(got).toContain(`--plain-http ${LOCAL}`);
    expect(plane.audit.events).toMatchObject([{ type: 'sandbox.proxy.trust_denied' }]);
  });

  test('a listed host is reached without being allowed for https', async () => {
    Object.assign(plane.session, { sealed: true, allowed: allowedHosts([], []) });
    expect(await ask(get(`http://${HOST}/`))).toBe(REPLY);
  });
});

test('the end of the session ends a plain request under way', async () => {
  const closers: (() => unknown)[] = [];
  const reached = Promise.withResolvers<void>();
  await plane.plainUpstream(HOST, () => reached.resolve());
  Object.assign(plane.session, {
    openTunnel: (close: () => unknown) => {
      closers.push(close);
      return () => undefined;
    },
  });
  const got = plane.raw(get(`http://${HOST}/`));
  await reached.promise;
  for (const close of closers) void close();
  expect(await got).toBe('');
});
