import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { meReply } from '../../shared/wire/account.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Caller } from '../../worker/kernel/caller.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { CONTROL_PLANE, SVC } from '../support/program.ts';
import { signInBrowser } from './hosted_users.ts';
import { addUser, type InProcess, parseReply, startInProcess } from './in_process.ts';
import { freePort } from '../support/free_port.ts';
import { listening, run, type Running, until } from './programs.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';

/** Spec section 5, design sections 6 and 10: a machine without its own control plane. */
let server: string;
let machine: string;
let url: string;
let control: Running;
let beside: InProcess;
let user: Caller;
let cookie: string;

beforeAll(async () => {
  server = await mkdtemp(join(tmpdir(), 'svc-hosted-'));
  machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  const key = randomBytes(32).toString('base64url');
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const settings = { SVC_VAULT_KEY: key, SVC_PUBLIC_URL: url, SVC_ALLOWED_HOSTS: `127.0.0.1:${port}` };
  control = run('node', [...CONTROL_PLANE, '--home', server, '--port', String(port)], settings);
  await until(control, listening(control));
  // A second worker on the same database signs a browser in, like a provider.
  const client = createClient({ url: `file:${join(server, 'control.db')}`, timeout: 5_000 });
  const shared = { database: openDatabase(client), clock: SYSTEM_CLOCK, masterKey: new Secret(key), publicUrl: url };
  beside = await startInProcess({ ...shared, localKey: null });
  user = await addUser(beside.context, null);
  cookie = await signInBrowser(beside, user);
});
afterAll(async () => {
  await beside.stop();
  await control.stop();
  await rm(server, { recursive: true, force: true });
  await rm(machine, { recursive: true, force: true });
});

const svc = (...args: string[]) => run(SVC, ['--home', machine, ...args], {});

/** The output of a command after its end. */
async function waitForEnd(program: Running): Promise<string> {
  if (program.child.exitCode === null) await new Promise((resolve) => program.child.once('close', resolve));
  return program.output();
}

async function approve(code: string): Promise<string> {
  const headers = { cookie, origin: url };
  const body = new URLSearchParams({ user_code: code, decision: 'approve' });
  const question = await fetch(`${url}/device`, { method: 'POST', headers, body });
  const decided = await fetch(`${url}/device/decide`, { method: 'POST', headers, body });
  expect([question.status, decided.status]).toEqual([200, 200]);
  return question.text();
}

test('svc login signs in by a code that is typed in a browser, and enrols a sidecar that runs without a local worker', async () => {
  const login = svc('login', '--control', url, '--name', 'laptop of a test');
  const code = await until(login, async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())?.[0] ?? null);
  expect(login.output()).toContain(`${url}/device`);
  const question = await approve(code);
  expect(question).toContain('svc on laptop of a test');
  expect(question).toContain('127.0.0.1');
  expect(await waitForEnd(login)).toContain(`signed in to ${url}`);

  const me = meReply.parse(JSON.parse(await waitForEnd(svc('api', 'GET', '/v1/me'))));
  expect(me.id).toBe(user.userId);
  const { items } = sidecarsPage.parse(JSON.parse(await waitForEnd(svc('api', 'GET', '/v1/sidecars'))));
  expect(items.map(({ name, revoked_at: revoked }) => [name, revoked])).toEqual([['laptop of a test', null]]);

  const sidecar = svc('sidecar', '--proxy-port', '0');
  await until(sidecar, async () => (sidecar.output().includes('the sidecar listens on') ? true : null));
  const health = z.object({ sidecar: z.object({ channel: z.object({ state: z.string() }) }) });
  await until(sidecar, async () => {
    const status = health.safeParse(JSON.parse(await waitForEnd(svc('--json', 'status'))));
    return status.success && status.data.sidecar.channel.state === 'up' ? true : null;
  });
  expect(await waitForEnd(svc('logout'))).toContain('stop it first');
  await sidecar.stop();
});

test('svc logout revokes the sidecar and the sign-in, locally and at the control plane', async () => {
  const kept = z
    .object({ access_token: z.string(), refresh_token: z.string() })
    .loose()
    .parse(JSON.parse(readFileSync(join(machine, 'sign_in.json'), 'utf8')));
  expect(await waitForEnd(svc('logout'))).toContain('is revoked');
  expect(existsSync(join(machine, 'sign_in.json'))).toBe(false);
  expect(existsSync(join(machine, 'sidecar', 'identity.json'))).toBe(false);
  const headers = { authorization: `Bearer ${kept.access_token}` };
  expect((await fetch(`${url}/v1/me`, { headers })).status).toBe(401);
  const body = JSON.stringify({ refresh_token: kept.refresh_token });
  const refresh = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  expect((await fetch(`${url}/auth/refresh`, refresh)).status).toBe(401);
  const list = fetch(`${url}/v1/sidecars`, { headers: { cookie } });
  expect((await parseReply(sidecarsPage, list)).items.map(({ revoked_at: at }) => at === null)).toEqual([false]);
});

test("no token is in the programs' output or in the database", async () => {
  const said = control.output();
  expect(said).not.toMatch(/svc_rt_|eyJ/);
  const files = ['control.db', 'control.db-wal'].filter((name) => existsSync(join(server, name)));
  for (const file of files) expect(readFileSync(join(server, file)).includes('svc_rt_')).toBe(false);
});
