import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { sidecarsPage } from '../../shared/wire/sidecars.ts';
import { meReply } from '../../shared/wire/account.ts';
import { SVC } from '../support/program.ts';
import { type HostedControlPlane, startHostedControlPlane, startSidecar } from './hosted_control_plane.ts';
import { parseReply } from './in_process.ts';
import { run, waitForEnd } from './programs.ts';

/** Spec section 5, design sections 6 and 10: a machine without its own control plane. */
let machine: string;
let control: HostedControlPlane;

beforeAll(async () => {
  machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  control = await startHostedControlPlane();
});
afterAll(async () => {
  await control.stop();
  await rm(machine, { recursive: true, force: true });
});

const svc = (...args: string[]) => run(SVC, ['--home', machine, ...args], {});

test('svc login signs in by a code that is typed in a browser, and enrols a sidecar that runs without a local worker', async () => {
  const login = svc('login', '--control', control.url, '--name', 'laptop of a test');
  const question = await control.approve(login);
  expect(login.output()).toContain(`${control.url}/device`);
  expect(question).toContain('svc on laptop of a test');
  expect(question).toContain('127.0.0.1');
  expect(await waitForEnd(login)).toContain(`signed in to ${control.url}`);

  const me = meReply.parse(JSON.parse(await waitForEnd(svc('api', 'GET', '/v1/me'))));
  expect(me.id).toBe(control.user.userId);
  const { items } = sidecarsPage.parse(JSON.parse(await waitForEnd(svc('api', 'GET', '/v1/sidecars'))));
  expect(items.map(({ name, revoked_at: revoked }) => [name, revoked])).toEqual([['laptop of a test', null]]);

  const sidecar = await startSidecar(svc);
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
  expect((await fetch(`${control.url}/v1/me`, { headers })).status).toBe(401);
  const body = JSON.stringify({ refresh_token: kept.refresh_token });
  const refresh = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  expect((await fetch(`${control.url}/auth/refresh`, refresh)).status).toBe(401);
  const list = fetch(`${control.url}/v1/sidecars`, { headers: { cookie: control.cookie } });
  expect((await parseReply(sidecarsPage, list)).items.map(({ revoked_at: at }) => at === null)).toEqual([false]);
});

test("no token is in the programs' output or in the database", async () => {
  const said = control.output();
  expect(said).not.toMatch(/svc_rt_|eyJ/);
  const files = ['control.db', 'control.db-wal'].filter((name) => existsSync(join(control.home, name)));
  for (const file of files) expect(readFileSync(join(control.home, file)).includes('svc_rt_')).toBe(false);
});
