import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HostedControlPlane, startHostedControlPlane, startSidecar } from './runtimes/hosted_control_plane.ts';
import { run, waitForEnd } from './runtimes/programs.ts';
import { type CompanyProxy, startCompanyProxy } from './support/company_proxy.ts';
import { SVC } from './support/program.ts';
import { createTestCa } from './support/test_ca.ts';
import { startTlsFront, type TlsFront } from './support/tls_front.ts';

// A machine that finds the hosted control plane and the APIs by the names that only its company's proxy resolves.

const CONTROL = 'control.acme.test';
const API = 'api.acme.test';
const TOKEN = 'planted-token-of-the-api';

let machine: string;
let control: HostedControlPlane;
let front: TlsFront;
let proxy: CompanyProxy;
let env: Record<string, string>;

beforeAll(async () => {
  machine = await mkdtemp(join(tmpdir(), 'svc-machine-'));
  control = await startHostedControlPlane(`https://${CONTROL}`);
  const ca = await createTestCa();
  front = await startTlsFront(await ca.issue([CONTROL, API]));
  front.route(CONTROL, control.url);
  front.route(API, (request, response) => {
    const { authorization = '' } = request.headers;
    response.end(createHash('sha256').update(authorization).digest('hex'));
  });
  proxy = await startCompanyProxy({ leadTo: (target) => (target.endsWith('.acme.test:443') ? front.port : null) });
  env = { HTTPS_PROXY: proxy.url.replace('//', '//worker:word@'), SVC_UPSTREAM_CA: ca.file };
});
afterAll(async () => {
  await control.stop();
  await front.stop();
  await proxy.close();
  await rm(machine, { recursive: true, force: true });
});

const svc = (...args: string[]) => run(SVC, ['--home', machine, ...args], env);

it('signs in, enrols a sidecar and runs a command, all through the proxy', async () => {
  const login = svc('login', '--control', `https://${CONTROL}`, '--name', 'laptop of a test');
  await control.approve(login);
  expect(await waitForEnd(login)).toContain(`signed in to https://${CONTROL}`);

  const secret = JSON.stringify({ path: 'user/demo', value: TOKEN });
  await waitForEnd(svc('api', 'POST', '/v1/secrets', '--data', secret));
  const added = svc('binding', 'add', API, '--scheme', 'bearer', '--credential', 'vault://user/demo');
  expect(await waitForEnd(added)).toMatch(/^bnd_\w+\n$/);

  const sidecar = await startSidecar(svc);
  const sent = createHash('sha256').update(`Bearer ${TOKEN}`).digest('hex');
  expect(await waitForEnd(svc('run', '--', 'curl', '-sS', `https://${API}/`))).toBe(sent);
  await sidecar.stop();

  const hosts = new Set(proxy.heads.map((head) => head.split(' ')[1]));
  expect(hosts).toEqual(new Set([`${API}:443`, `${CONTROL}:443`]));
  const credentials = `Proxy-Authorization: Basic ${btoa('worker:word')}`;
  expect(proxy.heads.every((head) => head.includes(`\r\n${credentials}\r\n`))).toBe(true);
});
