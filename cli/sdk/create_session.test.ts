import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSession } from './create_session.ts';

let home: string;
let sidecar: Server;
let origin: string;
let reply: object;
let calls: string[];
let status: number;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-session-'));
  calls = [];
  status = 200;
  sidecar = createServer((request, answer) => {
    calls.push(`${request.method} ${request.url}`);
    answer.writeHead(status).end(JSON.stringify(reply));
  });
  await new Promise<void>((done) => sidecar.listen(0, '127.0.0.1', done));
  const address = sidecar.address();
  origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  mkdirSync(join(home, 'sidecar'));
  writeFileSync(join(home, 'run.json'), JSON.stringify({ proxy_url: origin, sidecar_pid: process.pid }));
  writeFileSync(join(home, 'sidecar', 'host.token'), 'a-token-of-this-machine', { mode: 0o600 });
  writeFileSync(join(home, 'ca.pem'), 'the roots');
  reply = {
    session_id: 'ses_1',
    token: 'token-of-the-session',
    proxy_url: origin,
    ca_pem_path: join(home, 'ca.pem'),
    ca_bundle_path: join(home, 'ca.pem'),
    expires_at: '2026-12-01T00:00:00.000Z',
    sentinels: [],
    sdk_endpoints: ['aws', 'google', 'azure', 'another'],
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await new Promise((done) => sidecar.close(done));
  rmSync(home, { recursive: true });
});

test('a session leads the SDKs of clouds to the sidecar, and to no endpoint of the caller', async () => {
  const inherit = {
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/own',
    MSI_ENDPOINT: 'http://127.0.0.1:1/',
    PATH: '/bin',
  };
  const session = await createSession({ home, inherit });
  await session.end();
  expect(session.environment).toMatchObject({
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/v1/sdk/aws/credentials`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer token-of-the-session',
    IDENTITY_ENDPOINT: `${origin}/v1/sdk/azure/token`,
    PATH: '/bin',
  });
  // No listener answers this session alone.
  expect(Object.keys(session.environment).filter((name) => /^GCE_|RELATIVE_URI$|^MSI_/.test(name))).toEqual([]);
});

test('a session whose reply cannot be used is ended', async () => {
  reply = { ...reply, ca_pem_path: join(home, 'nothing.pem') };
  await expect(createSession({ home })).rejects.toThrow('ENOENT');
  expect(calls).toEqual(['POST /v1/sandbox-proxy/sessions', 'DELETE /v1/sandbox-proxy/sessions/ses_1']);
});

test('an empty SVC_HOME does not make the working directory a state directory', async () => {
  vi.stubEnv('SVC_HOME', '');
  await expect(createSession()).rejects.toThrow('SVC_HOME is empty');
});

test('an end that failed can be tried again, and is not repeated once it is done', async () => {
  const session = await createSession({ home });
  status = 503;
  await expect(session.end()).rejects.toThrow('the sidecar answered 503');
  status = 200;
  await session.end();
  await session.end();
  expect(calls.filter((call) => call.startsWith('DELETE'))).toHaveLength(2);
});
