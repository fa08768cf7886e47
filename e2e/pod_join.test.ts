import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { serviceAccountRecord } from '../shared/wire/service_accounts.ts';
import { type HostedControlPlane, startHostedControlPlane } from './runtimes/hosted_control_plane.ts';
import { type JobIssuer, startJobIssuer } from './runtimes/job_issuer.ts';
import { foundIn, plantSecret } from './support/planted_secret.ts';
import { type Finished, run, start, SVC, systemPath } from './support/program.ts';
import { createTestCa } from './support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';
import { waitFor } from './support/wait_for.ts';

// A pod joins by the token of its service account, and hands the session over to another container. The issuer is a real OpenID
// provider whose tokens say what those of Kubernetes say.

const HOST = 'api.example.test';
const SECRET = plantSecret();
const temporary = mkdtempSync(join(tmpdir(), 'svc-e2e-pod-'));
const session = join(temporary, 'session');
const token = join(temporary, 'token');

const podClaims = (namespace: string, name: string): Readonly<Record<string, unknown>> => ({
  'kubernetes.io': { namespace, pod: { name: 'agent-x1', uid: 'u' }, serviceaccount: { name, uid: 'v' } },
});

let cluster: JobIssuer;
let control: HostedControlPlane;
let upstream: TlsUpstream;
let flags: readonly string[];

beforeAll(async () => {
  cluster = await startJobIssuer(podClaims('svc-agents', 'agent'));
  control = await startHostedControlPlane();
  const ca = await createTestCa();
  upstream = await startTlsUpstream(await ca.issue([HOST]));
  const claims = { 'kubernetes.io/namespace': 'svc-agents', 'kubernetes.io/serviceaccount/name': 'agent' };
  const account = await makeAccount(claims);
  await asAdmin('POST', `/v1/service-accounts/${account}/secrets`, { path: 'pod/key', value: SECRET });
  const binding = { host: HOST, scheme: 'bearer', credential_ref: 'vault://pod/key' };
  await asAdmin('POST', `/v1/service-accounts/${account}/host-bindings`, binding);
  flags = ['--service-account', account, '--upstream-ca', ca.file, '--resolve', `${HOST}:127.0.0.1:${upstream.port}`];
});
afterAll(async () => {
  await control.stop();
  await upstream.close();
  await cluster.stop();
  rmSync(temporary, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(session, { recursive: true, force: true });
  mkdirSync(session);
});

async function makeAccount(claims: Readonly<Record<string, string>>): Promise<string> {
  const policy = { name: 'pods', issuer: cluster.issuer, claims, keys: await cluster.keys() };
  return serviceAccountRecord.parse(await asAdmin('POST', '/v1/service-accounts', policy)).id;
}

async function asAdmin(method: string, path: string, body: unknown): Promise<unknown> {
  const headers = { cookie: control.cookie, origin: control.url, 'content-type': 'application/json' };
  const reply = await fetch(control.url + path, { method, headers, body: JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return JSON.parse(text);
}

/** As the kubelet does for a volume with a `serviceAccountToken`. */
async function mountToken(from: JobIssuer, audience = control.url): Promise<void> {
  writeFileSync(token, await from.tokenFor(audience));
}

const joinArgs = (more: readonly string[] = []): readonly string[] => [
  'join',
  ...flags,
  '--token-file',
  token,
  ...more,
];
const env = (): Record<string, string> => ({ TMPDIR: temporary, SVC_CONTROL_URL: control.url });
const joinOnce = (more: readonly string[]): Promise<Finished> =>
  run(SVC, joinArgs(more), { env: env(), cwd: temporary });

it('gives the agent beside it a session, and takes it back at the end of the pod', async () => {
  await mountToken(cluster);
  const child = start(SVC, joinArgs(['--hand-over', session]), { env: env(), cwd: temporary });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await waitFor('the session', () => existsSync(join(session, 'env.sh')));
  const agent = `. '${session}/env.sh'; curl -sS --fail https://${HOST}/items; env`;
  const done = await run('sh', ['-c', agent], { env: { PATH: systemPath() } });
  expect(done.code).toBe(0);
  expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  expect(done.stdout).toContain(`SSL_CERT_FILE=${session}/ca.pem`);
  for (const secret of [SECRET, readFileSync(token, 'utf8')]) {
    const seen = [done.stdout, ...readdirSync(session).map((name) => readFileSync(join(session, name), 'utf8'))];
    expect(foundIn(seen.join('\n'), secret)).toEqual([]);
  }
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(readdirSync(session)).toEqual([]);
  expect(readdirSync(temporary).toSorted()).toEqual(['session', 'token']);
});

it.each([
  ['another namespace', podClaims('somebody', 'agent'), 'kubernetes.io/namespace'],
  ['another service account', podClaims('svc-agents', 'default'), 'kubernetes.io/serviceaccount/name'],
  ['a name that begins like it', podClaims('svc-agents', 'agent-evil'), 'kubernetes.io/serviceaccount/name'],
  [
    'a namespace in another place',
    { namespace: 'svc-agents', serviceaccount: { name: 'agent' } },
    'kubernetes.io/namespace',
  ],
])('refuses the pod of %s', async (_what, claims, differing) => {
  const other = await startJobIssuer(claims);
  try {
    // The same cluster's keys sign it: only the claims differ.
    const policy = { name: 'other', issuer: other.issuer, keys: await other.keys() };
    const rules = { 'kubernetes.io/namespace': 'svc-agents', 'kubernetes.io/serviceaccount/name': 'agent' };
    const made = await asAdmin('POST', '/v1/service-accounts', { ...policy, claims: rules });
    const { id } = serviceAccountRecord.parse(made);
    await mountToken(other);
    const refused = await run(SVC, ['join', '--service-account', id, '--token-file', token, '--hand-over', session], {
      env: env(),
      cwd: temporary,
    });
    expect(refused.code).toBe(125);
    expect(refused.stderr).toContain(differing);
    expect(readdirSync(session)).toEqual([]);
  } finally {
    await other.stop();
  }
});

it('refuses a token for another service, one of another cluster, and one that was used', async () => {
  await mountToken(cluster, 'https://kubernetes.default.svc');
  expect((await joinOnce(['--hand-over', session])).code).toBe(125);
  const other = await startJobIssuer(podClaims('svc-agents', 'agent'));
  await mountToken(other);
  await other.stop();
  expect((await joinOnce(['--hand-over', session])).code).toBe(125);
  await mountToken(cluster);
  expect((await joinOnce(['--', 'true'])).code).toBe(0);
  expect((await joinOnce(['--', 'true'])).code).toBe(125);
  expect(readdirSync(session)).toEqual([]);
});

it.each([
  [[], 'the command is missing'],
  [['--hand-over', session, '--', 'true'], 'runs no command'],
  [['--hand-over', session, '--sandbox'], '--hand-over and --sandbox cannot be combined'],
  [['--hand-over', join(temporary, 'nothing')], 'is not a folder'],
])('refuses %j before it asks for anything', async (more, text) => {
  const refused = await joinOnce(more);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(text)]);
});
