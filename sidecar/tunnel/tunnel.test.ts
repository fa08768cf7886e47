import { afterEach, beforeEach, expect, test } from 'vitest';

import type { DataPlane } from '../testing/data_plane.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
});

afterEach(async () => {
  expect(plane.errors).toEqual([]);
  await plane.stop();
});

async function ask(request: string, servername = HOST): Promise<string> {
  const client = await plane.open(HOST, servername);
  client.write(request, 'latin1');
  return readUntil(client, (got) => /\r\n\r\n(hi|.*\n)$/s.test(got) && !got.startsWith('HTTP/1.1 100'));
}

test('adds the bearer of the binding and records it without the secret', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  plane.policy.use([bearerBinding(HOST)]);
  expect(await ask(`GET /a?b=c HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).toBe(REPLY);
  expect(seen).toEqual([`GET /a?b=c HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`]);
  expect(plane.audit.events).toMatchObject([
    {
      type: 'sandbox.proxy.binding_injected',
      session_id: 'ses_test',
      data: { 'svc.proxy.upstream.path': '/a', 'svc.proxy.upstream.status': 200, 'svc.proxy.binding.scheme': 'bearer' },
    },
  ]);
  expect(JSON.stringify(plane.audit.events)).not.toContain(SECRET);
});

test('replaces every Authorization the client sent, and one that Connection nominates', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  plane.policy.use([bearerBinding(HOST)]);
  await ask(
    `GET / HTTP/1.1\r\nHost: ${HOST}\r\nauthorization: a\r\nAUTHORIZATION: b\r\nConnection: authorization, x-hop\r\nX-Hop: 1\r\nProxy-Authorization: p\r\n\r\n`,
  );
  expect(seen).toEqual([`GET / HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`]);
});

test("buffers a credentialed request's body and sends it with its length", async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  plane.policy.use([bearerBinding(HOST)]);
  await ask(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`);
  expect(seen).toEqual([
    `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\nAuthorization: Bearer ${SECRET}\r\n\r\nabc`,
  ]);
});

test('forwards an unbound request byte for byte', async () => {
  const seen: string[] = [];
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  const request = `BREW /x HTTP/1.1\r\nhOsT:${HOST}\r\nX-A:  1\r\nx-a:\r\nCookie: \xe4\r\n\r\n`;
  expect(await ask(request)).toBe(REPLY);
  expect(seen).toEqual([request]);
  expect(plane.credentials.asked).toEqual([]);
  expect(plane.audit.events).toMatchObject([
    { type: 'sandbox.proxy.passthrough', data: { 'svc.proxy.method': 'BREW' } },
  ]);
});

test.each([
  ['Host', `GET / HTTP/1.1\r\nHost: other.example.test\r\n\r\n`, HOST],
  ['absolute target', `GET https://other.example.test/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, HOST],
  ['server name', `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 'other.example.test'],
])('refuses a credentialed request whose %s names another host', async (_place, request, servername) => {
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(request, servername);
  expect(reply).toMatch(/^HTTP\/1\.1 421 .*authority_mismatch/s);
  expect(plane.credentials.asked).toEqual([]);
  expect(plane.audit.events).toMatchObject([
    { type: 'sandbox.proxy.rejected', data: { 'svc.proxy.reason': 'authority_mismatch' } },
  ]);
});

test('checks the contract before it requests a credential', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
  );
  plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
  const reply = await ask(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 0\r\n\r\n`);
  expect(reply).toMatch(/^HTTP\/1\.1 403 .*effect_not_allowed/s);
  expect(plane.credentials.asked).toEqual([]);
  expect(plane.audit.events).toMatchObject([
    { type: 'sandbox.proxy.trust_denied', data: { 'svc.proxy.reason': 'effect_not_allowed' } },
  ]);
});

test('masks the credential in headers, body, chunks and trailers of the reply', async () => {
  await plane.upstream(
    HOST,
    createAnswering(
      () =>
        `HTTP/1.1 200 OK\r\nX-Echo: ${SECRET}\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n${SECRET}\r\n0\r\nX-T: ${SECRET}\r\n\r\n`,
    ),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const client = await plane.open(HOST);
  client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  const reply = await readUntil(client, (got) => got.endsWith('*\r\n\r\n'));
  expect(reply).not.toContain(SECRET);
  expect(reply).toContain(`X-Echo: ${'*'.repeat(SECRET.length)}\r\n`);
  expect(reply).toContain(`0\r\nX-T: ${'*'.repeat(SECRET.length)}\r\n\r\n`);
});

test("answers 407 without a session's credentials and lets the client try again", async () => {
  const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
  const first = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`;
  const second = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
  const got = await plane.raw(first + second, (text) => text.includes(' 200 Connection Established'));
  expect(got).toMatch(/^HTTP\/1\.1 407 .*Proxy-Authenticate: Basic realm="svc"/s);
});

test.each([
  ['is sent twice', ['token', 'token']],
  ['is followed by another one', ['token', 'wrong']],
  ['follows another one', ['wrong', 'token']],
])('answers 407 when the credential %s', async (_name, passwords) => {
  const line = (password: string): string => {
    const basic = Buffer.from(`ses_test:${password === 'token' ? plane.token : password}`).toString('base64');
    return `Proxy-Authorization: Basic ${basic}\r\n`;
  };
  const lines = passwords.map(line).join('');
  const got = await plane.raw(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n${lines}\r\n`, (text) =>
    text.endsWith('\n'),
  );
  expect(got).toMatch(/^HTTP\/1\.1 407 .*proxy_authentication_required/s);
});

test.each([
  ['plain request', 'GET http://x.test/ HTTP/1.1', 403, 'non_connect_proxy_request'],
  ['CONNECT without a port', 'CONNECT x.test HTTP/1.1', 400, 'invalid_connect_target'],
  ['CONNECT to another port', 'CONNECT x.test:22 HTTP/1.1', 403, 'connect_port_not_allowed'],
])('refuses a %s', async (_name, line, status, code) => {
  const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
  const got = await plane.raw(`${line}\r\nHost: x.test\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`);
  expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*"${code}"`, 's'));
  expect(plane.audit.events).toMatchObject([{ type: 'sandbox.proxy.rejected', data: { 'svc.proxy.reason': code } }]);
});

test.each([
  ['more tunnels than the session may have', 429, 'too_many_tunnels', { openTunnel: () => null }],
  [
    'a session whose CA is gone',
    500,
    'session_ca_unavailable',
    { ca: { secureContextFor: () => Promise.reject(new Error('gone')) } },
  ],
])('refuses %s', async (_name, status, code, change) => {
  Object.assign(plane.session, change);
  const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
  const connect = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
  expect(await plane.raw(connect)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*"${code}"`, 's'));
  expect(plane.audit.events).toMatchObject([
    { type: 'sandbox.proxy.rejected', session_id: 'ses_test', data: { 'svc.proxy.reason': code } },
  ]);
  expect(plane.openTunnels()).toBe(0);
});

test('refuses a tunnel to a host outside a step scope before it is open', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
  );
  plane.policy.use([bearerBinding(HOST)]);
  Object.assign(plane.session, {
    reach: { stepId: 'fetch', includes: (host: string) => host === 'sealed.example.test' },
  });
  const basic = Buffer.from(`ses_test:${plane.token}`).toString('base64');
  const connect = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`;
  expect(await plane.raw(connect)).toMatch(/^HTTP\/1\.1 403 .*"step_scope_host_denied"/s);
  expect(plane.credentials.asked).toEqual([]);
  expect(plane.openTunnels()).toBe(0);
  expect(plane.audit.events).toMatchObject([
    {
      type: 'sandbox.proxy.trust_denied',
      data: { 'svc.proxy.reason': 'step_scope_host_denied', 'svc.step.id': 'fetch', 'svc.proxy.upstream.host': HOST },
    },
  ]);
});

test('passes a request that is not proxy-shaped to the local API', async () => {
  const got = await plane.raw('GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  expect(got).toContain('local api');
});

test('refuses an upstream whose certificate is for another name', async () => {
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
    'other.example.test',
  );
  const reply = await ask(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  expect(reply).toMatch(/^HTTP\/1\.1 502 .*upstream_tls_failed/s);
});

test('answers a body over the limit with 413 and requests no credential', async () => {
  await plane.stop();
  plane = await startDataPlane({ maxCredentialedBodyBytes: 10 });
  await plane.upstream(
    HOST,
    createAnswering(() => REPLY),
  );
  plane.policy.use([bearerBinding(HOST)]);
  const reply = await ask(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 11\r\n\r\nhello world`);
  expect(reply).toMatch(/^HTTP\/1\.1 413 .*body_too_large/s);
  expect(plane.credentials.asked).toEqual([]);
});
