import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import { recogniseRun } from '../connector/recognise.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';

/** Requests of an agent at the token URL of a login that svc keeps. */

const HOST = 'auth.example.test';
const API = 'api.example.test';
const CLIENT = 'client-of-a-test';
const PLACEHOLDER = 'placeholder-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ';
const REFRESH = refreshPlaceholder(PLACEHOLDER);
const TOKEN = 'planted-access-token-0123456789';
const OPERATION = sampleOperation({ name: 'token', method: 'POST', path: '/token', effect: 'write', inputs: [] });
const REFRESHING = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: REFRESH };
const CREDENTIAL = { owner: 'personal', path: 'connectors/login/claude' } as const;
const BINDING = sampleBinding({
  host: API,
  credential: CREDENTIAL,
  emit: { mechanism: 'sentinel-swap', sentinel: PLACEHOLDER },
});

function loginConnector(hosts: readonly string[] = [API]): InstalledConnector {
  const plain = sampleConnector([OPERATION], { fqn: 'login/claude', hosts: [HOST] });
  const login = { clientId: CLIENT, tokenRequest: 'json', hosts, paths: ['/v1'] } as const;
  return { ...plain, spec: { ...plain.spec, credential: { kind: 'oauth2', scopes: [], login } } };
}

let plane: DataPlane;
let seen: string[];

beforeEach(async () => {
  seen = [];
  plane = await startDataPlane();
  plane.credentials.set(CREDENTIAL, TOKEN);
  const answer = createAnswering((request) => (seen.push(request), 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone'));
  for (const host of [HOST, API]) await plane.upstream(host, answer);
  plane.policy.use([BINDING], [loginConnector()]);
});
afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

async function ask(body: string, { lines = '', host = HOST, path = '/token' } = {}): Promise<string> {
  const client = await plane.open(host, host);
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  client.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${length}\r\n${lines}\r\n${body}`, 'latin1');
  return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'));
}
const lastEvent = () => plane.audit.events.at(-1);

describe('at the token URL of a login', () => {
  test('a refresh with a placeholder is answered here, and nothing is sent', async () => {
    const reply = await ask(JSON.stringify(REFRESHING));
    expect(reply).toContain('HTTP/1.1 200 OK');
    expect(JSON.parse(reply.split('\r\n\r\n')[1] ?? '')).toMatchObject({
      access_token: PLACEHOLDER,
      refresh_token: REFRESH,
    });
    expect(seen).toEqual([]);
    expect(lastEvent()).toMatchObject({
      type: 'connector.proxy.proxied',
      data: { 'svc.connector.fqn': 'login/claude', 'svc.proxy.reason': 'answered_locally' },
    });
    expect(lastEvent()?.data).not.toHaveProperty('svc.proxy.upstream.status');
  });

  test.each([
    ['another grant', { grant_type: 'authorization_code' }, ''],
    ['another client', { client_id: 'other' }, ''],
    ['a placeholder in a header', { refresh_token: 'own' }, `Authorization: Bearer ${PLACEHOLDER}\r\n`],
  ])('%s with a placeholder is refused, and nothing is sent', async (_what, changes, lines) => {
    const reply = await ask(JSON.stringify({ ...REFRESHING, ...changes }), { lines });
    expect(reply).toContain('HTTP/1.1 403 ');
    expect(reply).toContain('placeholder_not_accepted');
    expect(seen).toEqual([]);
    expect(lastEvent()?.type).toBe('connector.proxy.rejected');
  });

  test('the program’s own login passes through unchanged and without a credential', async () => {
    const own = JSON.stringify({
      grant_type: 'authorization_code',
      client_id: CLIENT,
      code: 'own',
      code_verifier: 'v',
    });
    expect(await ask(own, { lines: 'Content-Type: application/json\r\n' })).toContain('done');
    expect(seen).toHaveLength(1);
    expect(seen[0]).toContain(own);
    expect(seen[0]).not.toContain(TOKEN);
    expect(lastEvent()?.type).toBe('sandbox.proxy.passthrough');
  });

  test('it is no passthrough if another connector has the same request', async () => {
    const other = sampleConnector([OPERATION], { fqn: 'acme/other', hosts: [HOST] });
    plane.policy.use([BINDING], [loginConnector(), other]);
    expect(await ask(JSON.stringify(REFRESHING))).toContain('ambiguous_target');
    expect(seen).toEqual([]);
  });

  test('another spelling of its path is refused', async () => {
    expect(await ask(JSON.stringify(REFRESHING), { path: '//token' })).toContain('ambiguous_target');
    expect(seen).toEqual([]);
  });
});

test('the placeholder becomes the access token at the host of the login, and no other', async () => {
  await ask('{}', { host: API, path: '/v1', lines: `Authorization: Bearer ${PLACEHOLDER}\r\n` });
  expect(seen[0]).toContain(`Bearer ${TOKEN}`);
  await ask('{}', { host: API, path: '/v1', lines: `Authorization: Bearer ${REFRESH}\r\n` });
  expect(seen[1]).not.toContain(TOKEN);
});

test('a request without the placeholder is forwarded without the access token', async () => {
  await ask('{}', { host: API, path: '/v1' });
  expect(seen[0]).not.toContain(TOKEN);
  expect(seen[0]).not.toContain('Authorization');
  expect(lastEvent()?.type).toBe('sandbox.proxy.passthrough');
});

test.each([
  '/v1x',
  '/api/oauth/claude_cli/create_api_key',
  '/v1/../api/oauth/claude_cli/create_api_key',
  '/v1/%2e%2e/api/key',
  '/v1/%252e%252e/api/key',
  '/V1/messages',
])('the access token is not used at a path that the login does not name: %s', async (path) => {
  const reply = await ask('{}', { host: API, path, lines: `Authorization: Bearer ${PLACEHOLDER}\r\n` });
  expect(reply).toContain('host_not_allowed');
  expect(seen).toEqual([]);
});

test.each([
  ['no longer names the host', () => [loginConnector(['other.example.test'])]],
  ['is now of another kind', () => [sampleConnector([OPERATION], { fqn: 'login/claude', hosts: [HOST] })]],
  ['belongs to the enterprise', () => [{ ...loginConnector(), owner: 'enterprise' as const }]],
  ['is gone', () => []],
])('a binding gets no access token if its connector %s', async (_what, connectors) => {
  plane.policy.use([BINDING], connectors());
  const reply = await ask('{}', { host: API, path: '/v1', lines: `Authorization: Bearer ${PLACEHOLDER}\r\n` });
  expect(reply).toContain('host_not_allowed');
  expect(seen).toEqual([]);
});

test('the request for tokens cannot be run by name', () => {
  const policy = plane.policy.current();
  if (!policy.ok) throw new Error(policy.error.message);
  const run = { connector_fqn: 'login/claude', operation: 'token', args: {} };
  expect(recogniseRun(policy.value, run)).toMatchObject({ error: { reason: 'connector_operation_not_found' } });
});
