import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GitUpstream, startGitUpstream } from './support/git_upstream.ts';
import { OpenRun } from './support/open_run.ts';
import { plantSecret } from './support/planted_secret.ts';
import { pythonWith, succeeds } from '../tools/system_parts.mjs';
import { type S3Upstream, startS3Upstream } from './support/s3_upstream.ts';
import { Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';
import { reply, startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';

// Third-party programs in one `svc run`, as an agent would use them, through the real proxy to real TLS upstreams.

const CLIENTS = join(import.meta.dirname, 'clients');
const API = 'api.example.test';
const GIT = 'git.example.test';
const S3 = 's3.example.test';
const TOKEN = plantSecret();
const PASSWORD = plantSecret();
const KEYS = { accessKeyId: 'AKIAE2EEXAMPLE000001', secretAccessKey: plantSecret() };
const python = pythonWith('requests');
let api: TlsUpstream;
let git: GitUpstream;
let s3: S3Upstream;
let svc: Svc;
let opened: OpenRun;

const agent = (...command: string[]): Promise<string> => opened.ok(command);

beforeAll(async () => {
  const ca = await createTestCa();
  api = await startTlsUpstream(await ca.issue([API]));
  git = await startGitUpstream(await ca.issue([GIT]), 'octo', PASSWORD);
  s3 = await startS3Upstream(await ca.issue([S3]), KEYS, 'bucket');
  const ports = [`${API}:127.0.0.1:${api.port}`, `${GIT}:127.0.0.1:${git.port}`, `${S3}:127.0.0.1:${s3.port}`];
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve: ports });
  await svc.secret('user/api', TOKEN);
  await svc.secret('user/git', PASSWORD);
  await svc.secret('user/aws', KEYS.secretAccessKey);
  await svc.binding({ host: API, scheme: 'bearer', credential_ref: 'vault://user/api' });
  await svc.binding({ host: GIT, scheme: 'basic', username: 'octo', credential_ref: 'vault://user/git' });
  await svc.binding({
    host: S3,
    scheme: 'sigv4-resign',
    credential_ref: 'vault://user/aws',
    access_key_id: KEYS.accessKeyId,
    region: 'eu-north-1',
    service: 's3',
  });
  opened = await OpenRun.start(svc.home);
});
afterAll(async () => {
  await svc.stop();
  await Promise.all([api.close(), git.close(), s3.close()]);
});

function expectBearer(): void {
  for (const request of api.requests) expect(request.headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
}

describe('curl', () => {
  it('gets and posts with the bearer', async () => {
    api.reset();
    expect(await agent('curl', '-sS', `https://${API}/a`, '--next', '-sS', '-d', 'x=1', `https://${API}/b`)).toBe(
      'okok',
    );
    expect(api.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /a', 'POST /b']);
    expect(api.last().body.data.toString()).toBe('x=1');
    expectBearer();
  });

  it("follows the upstream's protocol: HTTP/1.1 is negotiated, and a second request reuses the tunnel", async () => {
    api.reset();
    const said = await agent(
      'curl',
      '-sS',
      '-w',
      '%{http_version} %{num_connects} ',
      '-o',
      '/dev/null',
      `https://${API}/a`,
      '-o',
      '/dev/null',
      `https://${API}/b`,
    );
    expect(said).toMatch(/^1\.1 1 1\.1 0 $/);
  });
});

describe.skipIf(python === null)('python requests', () => {
  it('gets and posts with the bearer', async () => {
    api.reset();
    const said = await agent(python ?? 'python3', join(CLIENTS, 'requests_client.py'), `https://${API}/items`);
    expect(JSON.parse(said)).toEqual({ statuses: [200, 200], body: 'ok' });
    expect(api.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
      'GET /items?page=1',
      'POST /items',
    ]);
    expect(JSON.parse(api.last().body.data.toString())).toEqual({ title: 'a' });
    expectBearer();
  });
});

describe('node fetch', () => {
  it('posts with the bearer', async () => {
    api.reset();
    api.onRequest(async (exchange) => {
      await exchange.readBody();
      exchange.write(reply(201, '{"made":true}', ['Content-Type: application/json']));
    });
    const said = await agent(
      process.execPath,
      join(CLIENTS, 'fetch_client.mjs'),
      `https://${API}/items`,
      'POST',
      '{"a":1}',
    );
    expect(JSON.parse(said)).toEqual({ status: 201, body: '{"made":true}' });
    expect(api.last().body.data.toString()).toBe('{"a":1}');
    expectBearer();
  });
});

describe.skipIf(!succeeds('test -x "$(git --exec-path)/git-http-backend"'))('git', () => {
  it('clones and pushes with basic authentication that it does not have itself', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-clone-'));
    const inClone = (...args: string[]) =>
      opened.ok(['git', '-c', 'user.name=Agent', '-c', 'user.email=agent@example.test', ...args], {
        cwd: folder,
        env: { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' },
      });
    await inClone('clone', '-q', `https://${GIT}/project.git`, '.');
    writeFileSync(join(folder, 'large.bin'), Buffer.alloc(3_000_000, 'not so random'));
    await inClone('add', 'large.bin');
    await inClone('commit', '-q', '-m', 'An agent was here');
    await inClone('push', '-q', 'origin', 'HEAD:main');
    expect(git.git('log', '--format=%s', 'main')).toBe('An agent was here\n');
    const second = mkdtempSync(join(tmpdir(), 'svc-e2e-clone-'));
    await inClone('clone', '-q', `https://${GIT}/project.git`, second);
    expect(await inClone('-C', second, 'log', '--format=%s')).toBe('An agent was here\n');
    const wanted = `Basic ${Buffer.from(`octo:${PASSWORD}`).toString('base64')}`;
    expect(git.authorizations.length).toBeGreaterThan(4);
    expect(git.authorizations.every((seen) => seen === wanted)).toBe(true);
  });
});

describe('@aws-sdk/client-s3', () => {
  it('puts, gets, lists and deletes with placeholder keys, signed afresh at the proxy', async () => {
    const said = await opened.ok(
      [process.execPath, join(CLIENTS, 's3_client.mjs'), `https://${S3}`, 'bucket', 'us-east-1'],
      { env: { AWS_ACCESS_KEY_ID: 'AKIAPLACEHOLDER', AWS_SECRET_ACCESS_KEY: 'placeholder' } },
    );
    expect(JSON.parse(said)).toEqual({
      body: 'a report',
      streamedBytes: 200_000,
      length: 8,
      listed: ['reports/2026 Q1 (final)/a+b=c.txt'],
      left: ['streamed.bin'],
    });
    expect(s3.verdicts.length).toBeGreaterThan(6);
    for (const verdict of s3.verdicts) {
      expect(verdict).toEqual({ ok: true, accessKeyId: KEYS.accessKeyId, region: 'eu-north-1', service: 's3' });
    }
    for (const { text } of s3.tls.requests) expect(text).not.toContain('AKIAPLACEHOLDER');
  });
});

describe('the audit log afterwards', () => {
  it('has one event for each request of each client, and verifies', async () => {
    await opened.end();
    const injected = (await svc.events()).filter((event) => event.type === 'sandbox.proxy.binding_injected');
    const count = (host: string) => injected.filter((event) => event.data['svc.proxy.upstream.host'] === host).length;
    expect(count(GIT)).toBe(git.authorizations.length);
    expect(count(S3)).toBe(s3.tls.requests.length);
    expect(count(API)).toBeGreaterThan(5);
    await svc.ok(['audit', 'verify']);
  });
});
