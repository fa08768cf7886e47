import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createdScimToken } from '../../shared/wire/scim_tokens.ts';
import { createdToken } from '../../shared/wire/tokens.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { SVC } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { type HostedControlPlane, startHostedControlPlane, startSidecar } from './hosted_control_plane.ts';
import { run, type Running, waitForEnd } from './programs.ts';

/** Issue 19: a person whom the directory removes loses everything within five seconds, in the middle of their work. */
const MOST_MS = 5_000;
const HOST = 'api.example.test';
const SECRET = plantSecret();

let machine: string;
let control: HostedControlPlane;
let upstream: TlsUpstream;
let flags: readonly string[];
let sidecar: Running;

beforeAll(async () => {
  machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  control = await startHostedControlPlane();
  const ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([HOST]));
  flags = ['--upstream-ca', ca.file, '--resolve', `${HOST}:127.0.0.1:${upstream.port}`];
});
afterAll(async () => {
  await sidecar.stop();
  await control.stop();
  await upstream.close();
  await rm(machine, { recursive: true, force: true });
});

const svc = (...args: string[]) => run(SVC, ['--home', machine, ...args], {});

async function asPerson(method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { cookie: control.cookie, origin: control.url, 'content-type': 'application/json' };
  return fetch(control.url + path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

/** Proves the domain and the person's address, and adds another owner: the person becomes a member. */
async function putUnderDirectory(): Promise<string> {
  const { userId, enterpriseId } = control.user;
  const client = createClient({ url: `file:${join(control.home, 'control.db')}`, timeout: 5_000 });
  const write = (sql: string, ...args: string[]) => client.execute({ sql, args });
  await write(`UPDATE users SET role = 'owner' WHERE id = ?`, userId);
  const made = await asPerson('POST', '/v1/scim-tokens', { name: 'Okta' });
  const { token } = createdScimToken.parse(await made.json());
  const other = userId.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  await write(
    `INSERT INTO users (id, enterprise_id, display_name, role, created_at) VALUES (?, ?, 'Other', 'owner', '2026-01-01')`,
    other,
    enterpriseId,
  );
  await write(`UPDATE users SET role = 'member' WHERE id = ?`, userId);
  await write(`INSERT INTO enterprise_domains VALUES ('acme.test', ?, '2026-01-01')`, enterpriseId);
  await write(
    `UPDATE people SET verified_email = 'pat@acme.test' WHERE id = (SELECT person_id FROM users WHERE id = ?)`,
    userId,
  );
  client.close();
  return token;
}

const injected = () => upstream.requests.filter((request) => request.headers('authorization').length > 0);

test('sessions, tokens and the sidecar of a person end within five seconds of the request of the directory', async () => {
  const login = svc('login', '--control', control.url, '--name', 'laptop');
  await control.approve(login);
  await waitForEnd(login);
  await asPerson('POST', '/v1/secrets', { path: 'own/key', value: SECRET });
  await asPerson('POST', '/v1/host-bindings', { host: HOST, scheme: 'bearer', credential_ref: 'vault://own/key' });
  const made = await asPerson('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
  const personal = createdToken.parse(await made.json()).token;
  const token = await putUnderDirectory();
  const scim = (method: string, path: string, body?: unknown) =>
    fetch(`${control.url}/scim/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const linked = await scim('POST', '/Users', { userName: 'pat@acme.test' });
  expect(await linked.json()).toMatchObject({ id: control.user.userId });

  sidecar = await startSidecar(svc, flags);
  const agent = svc(
    'run',
    '--',
    'sh',
    '-c',
    `while :; do curl -sS -m 5 https://${HOST}/work || echo refused; sleep 0.1; done`,
  );
  await waitFor('requests of the agent with the credential', () => injected().length > 2);
  expect(injected()[0]?.headers('authorization')).toEqual([`Bearer ${SECRET}`]);

  const removedAt = Date.now();
  expect((await scim('DELETE', `/Users/${control.user.userId}`)).status).toBe(204);
  expect((await asPerson('GET', '/v1/me')).status).toBe(401);
  const byToken = await fetch(`${control.url}/v1/me`, { headers: { authorization: `Bearer ${personal}` } });
  expect(byToken.status).toBe(401);
  await pause(MOST_MS - (Date.now() - removedAt));
  const before = injected().length;
  await pause(2_000);
  expect(injected()).toHaveLength(before);
  await agent.stop();
  expect(agent.output()).not.toContain(SECRET);
  expect(await waitForEnd(svc('api', 'GET', '/v1/me'))).toContain('has ended');
  const fresh = svc('run', '--', 'curl', '-sS', `https://${HOST}/again`);
  await waitForEnd(fresh);
  expect(injected()).toHaveLength(before);
});
