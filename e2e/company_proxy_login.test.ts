import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { Secret } from '../shared/model/secret.ts';
import { SYSTEM_CLOCK } from '../worker/kernel/clock.ts';
import { openDatabase } from '../worker/store/database.ts';
import { signInBrowser } from './runtimes/hosted_users.ts';
import { addUser, type InProcess, startInProcess } from './runtimes/in_process.ts';
import { listening, run, type Running, until } from './runtimes/programs.ts';
import { type CompanyProxy, startCompanyProxy } from './support/company_proxy.ts';
import { freePort } from './support/free_port.ts';
import { CONTROL_PLANE, SVC } from './support/program.ts';
import { createTestCa } from './support/test_ca.ts';
import { startTlsFront, type TlsFront } from './support/tls_front.ts';

// A machine that finds the hosted control plane and the APIs by the names that only its company's proxy resolves.

const CONTROL = 'control.acme.test';
const API = 'api.acme.test';
const TOKEN = 'planted-token-of-the-api';

let server: string;
let machine: string;
let plain: string;
let control: Running;
let beside: InProcess;
let front: TlsFront;
let proxy: CompanyProxy;
let cookie: string;
let env: Record<string, string>;

beforeAll(async () => {
  server = await mkdtemp(join(tmpdir(), 'svc-hosted-'));
  machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  const key = randomBytes(32).toString('base64url');
  const port = await freePort();
  plain = `http://127.0.0.1:${port}`;
  const publicUrl = `https://${CONTROL}`;
  const settings = { SVC_VAULT_KEY: key, SVC_PUBLIC_URL: publicUrl, SVC_ALLOWED_HOSTS: CONTROL };
  control = run('node', [...CONTROL_PLANE, '--home', server, '--port', String(port)], settings);
  await until(control, listening(control));
  // A second worker on the same database signs a browser in, like a provider.
  const client = createClient({ url: `file:${join(server, 'control.db')}`, timeout: 5_000 });
  const shared = { database: openDatabase(client), clock: SYSTEM_CLOCK, masterKey: new Secret(key), publicUrl };
  beside = await startInProcess({ ...shared, localKey: null });
  cookie = await signInBrowser(beside, await addUser(beside.context, null));
  const ca = await createTestCa();
  front = await startTlsFront(await ca.issue([CONTROL, API]));
  front.route(CONTROL, plain);
  front.route(API, (request, response) => {
    const { authorization = '' } = request.headers;
    response.end(createHash('sha256').update(authorization).digest('hex'));
  });
  proxy = await startCompanyProxy({ leadTo: (target) => (target.endsWith('.acme.test:443') ? front.port : null) });
  env = { HTTPS_PROXY: proxy.url.replace('//', '//worker:word@'), SVC_UPSTREAM_CA: ca.file };
});
afterAll(async () => {
  await beside.stop();
  await control.stop();
  await front.stop();
  await proxy.close();
  await rm(server, { recursive: true, force: true });
  await rm(machine, { recursive: true, force: true });
});

const svc = (...args: string[]) => run(SVC, ['--home', machine, ...args], env);

/** The output of a command after its end. */
async function waitForEnd(program: Running): Promise<string> {
  if (program.child.exitCode === null) await new Promise((resolve) => program.child.once('close', resolve));
  return program.output();
}

async function approve(code: string): Promise<void> {
  const forwarded = { 'x-forwarded-host': CONTROL, 'x-forwarded-proto': 'https' };
  const headers = { cookie, origin: `https://${CONTROL}`, ...forwarded };
  const body = new URLSearchParams({ user_code: code, decision: 'approve' });
  for (const path of ['/device', '/device/decide']) {
    expect((await fetch(plain + path, { method: 'POST', headers, body })).status).toBe(200);
  }
}

it('signs in, enrols a sidecar and runs a command, all through the proxy', async () => {
  const login = svc('login', '--control', `https://${CONTROL}`, '--name', 'laptop of a test');
  await approve(await until(login, async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())?.[0] ?? null));
  expect(await waitForEnd(login)).toContain(`signed in to https://${CONTROL}`);

  const secret = JSON.stringify({ path: 'user/demo', value: TOKEN });
  await waitForEnd(svc('api', 'POST', '/v1/secrets', '--data', secret));
  const added = svc('binding', 'add', API, '--scheme', 'bearer', '--credential', 'vault://user/demo');
  expect(await waitForEnd(added)).toMatch(/^bnd_\w+\n$/);

  const sidecar = svc('sidecar', '--proxy-port', '0');
  await until(sidecar, async () => (sidecar.output().includes('the sidecar listens on') ? true : null));
  const health = z.object({ sidecar: z.object({ channel: z.object({ state: z.string() }) }) });
  await until(sidecar, async () => {
    const status = health.safeParse(JSON.parse(await waitForEnd(svc('--json', 'status'))));
    return status.success && status.data.sidecar.channel.state === 'up' ? true : null;
  });
  const sent = createHash('sha256').update(`Bearer ${TOKEN}`).digest('hex');
  expect(await waitForEnd(svc('run', '--', 'curl', '-sS', `https://${API}/`))).toBe(sent);
  await sidecar.stop();

  const hosts = new Set(proxy.heads.map((head) => head.split(' ')[1]));
  expect(hosts).toEqual(new Set([`${API}:443`, `${CONTROL}:443`]));
  const credentials = `Proxy-Authorization: Basic ${btoa('worker:word')}`;
  expect(proxy.heads.every((head) => head.includes(`\r\n${credentials}\r\n`))).toBe(true);
});
