import { createServer, type Server } from 'node:http';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { serviceAccountRecord } from '../shared/wire/service_accounts.ts';
import { type HostedControlPlane, startHostedControlPlane } from './runtimes/hosted_control_plane.ts';
import { type JobIssuer, startJobIssuer } from './runtimes/job_issuer.ts';
import { foundIn, plantSecret } from './support/planted_secret.ts';
import { type Finished, run, start, SVC } from './support/program.ts';
import { createTestCa } from './support/test_ca.ts';
import { listen, startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';
import { waitFor } from './support/wait_for.ts';

// A CI job whose platform signs tokens for it, at a hosted control plane.

const HOST = 'api.example.test';
const SECRET = plantSecret();
const REQUEST_TOKEN = plantSecret();
const temporary = mkdtempSync(join(tmpdir(), 'svc-e2e-join-'));
const eventsPage = z.object({ items: z.array(z.object({ type: z.string() })) });

let jobs: JobIssuer;
let requests: Server;
let control: HostedControlPlane;
let upstream: TlsUpstream;
let account: string;
let flags: readonly string[];
let env: Record<string, string>;

beforeAll(async () => {
  jobs = await startJobIssuer({ repository: 'acme/app', ref: 'refs/heads/main' });
  // What a job of GitHub Actions asks for its token.
  requests = createServer((request, response) => {
    const audience = new URL(request.url ?? '', 'http://localhost').searchParams.get('audience') ?? '';
    if (request.headers.authorization !== `Bearer ${REQUEST_TOKEN}`) {
      response.writeHead(401).end();
      return;
    }
    void jobs.tokenFor(audience).then((value) => response.end(JSON.stringify({ value })));
  });
  const requestUrl = `http://127.0.0.1:${await listen(requests)}/token?api-version=2.0`;
  control = await startHostedControlPlane();
  const ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([HOST]));
  // The control plane of a test cannot reach an issuer on this machine: hosted, it calls no private address.
  const policy = { name: 'deploy', issuer: jobs.issuer, claims: { repository: 'acme/app' }, keys: await jobs.keys() };
  const made = await asAdmin('POST', '/v1/service-accounts', policy);
  account = serviceAccountRecord.parse(made).id;
  await asAdmin('POST', `/v1/service-accounts/${account}/secrets`, { path: 'ci/key', value: SECRET });
  const binding = { host: HOST, scheme: 'bearer', credential_ref: 'vault://ci/key' };
  await asAdmin('POST', `/v1/service-accounts/${account}/host-bindings`, binding);
  flags = ['--service-account', account, '--upstream-ca', ca.file, '--resolve', `${HOST}:127.0.0.1:${upstream.port}`];
  env = {
    TMPDIR: temporary,
    SVC_CONTROL_URL: control.url,
    GITHUB_ACTIONS: 'true',
    ACTIONS_ID_TOKEN_REQUEST_URL: requestUrl,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
  };
});
afterAll(async () => {
  await control.stop();
  await upstream.close();
  await jobs.stop();
  requests.closeAllConnections();
  requests.close();
  rmSync(temporary, { recursive: true, force: true });
});

async function asAdmin(method: string, path: string, body?: unknown): Promise<unknown> {
  const reply = await fetch(control.url + path, {
    method,
    headers: { cookie: control.cookie, origin: control.url, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return JSON.parse(text);
}

function joinWith(more: readonly string[], ...command: string[]): Promise<Finished> {
  return run(SVC, ['join', ...flags, ...more, '--', ...command], { env, cwd: temporary });
}

/** The command lines that name a job's state directory. */
async function programsOfJobs(): Promise<readonly string[]> {
  const { stdout } = await run('ps', ['axww', '-o', 'args']);
  return stdout.split('\n').filter((line) => line.includes(join(temporary, 'svc-job-')));
}

/** Nothing of a job is left: no state, no sidecar here, none at the control plane. */
async function expectNothingLeft(): Promise<void> {
  expect(readdirSync(temporary)).toEqual([]);
  expect(await programsOfJobs()).toEqual([]);
  const now = serviceAccountRecord.parse(await asAdmin('GET', `/v1/service-accounts/${account}`));
  expect([now.live_sidecars, now.last_joined_at === null]).toEqual([0, false]);
}

it('runs its command with a credential, gives its exit status, and leaves nothing behind', async () => {
  const done = await joinWith([], 'sh', '-c', `curl -sS https://${HOST}/items; env; exit 7`);
  expect(done).toMatchObject({ code: 7 });
  expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  const said = done.stdout + done.stderr;
  expect(said).toContain('HTTPS_PROXY=');
  for (const secret of [SECRET, REQUEST_TOKEN]) expect(foundIn(said, secret)).toEqual([]);
  expect(said).not.toContain('ACTIONS_ID_TOKEN_REQUEST');
  await expectNothingLeft();
  const events = eventsPage.parse(await asAdmin('GET', '/v1/audit-events?limit=100')).items.map(({ type }) => type);
  for (const type of ['control.sidecar.joined', 'sandbox.proxy.binding_injected', 'control.sidecar.left']) {
    expect(events).toContain(type);
  }
});

it('passes on a signal, and leaves nothing behind then', async () => {
  const child = start(SVC, ['join', ...flags, '--', 'sh', '-c', 'echo began; exec sleep 600'], { env, cwd: temporary });
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await waitFor('the command to start', () => said.includes('began'));
  expect(await programsOfJobs()).toHaveLength(1);
  child.kill('SIGTERM');
  expect(await ended).toBe(143);
  await expectNothingLeft();
});

it('says what a refused job is, and what its token is for', async () => {
  const refused = await joinWith(['--audience', 'https://other.example.test'], 'true');
  expect([refused.code, refused.stdout]).toEqual([125, '']);
  expect(refused.stderr).toContain('The token says: aud = "https://other.example.test"');
  expect(refused.stderr).toContain('choose another with --audience');
  expect(readdirSync(temporary)).toEqual([]);
});
