import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GitUpstream, PUSHED, pushScript, startGitUpstream } from './support/git_upstream.ts';
import { plantSecret } from './support/planted_secret.ts';
import { type S3Upstream, startS3Upstream } from './support/s3_upstream.ts';
import { curlInSession } from './support/session_curl.ts';
import { Svc } from './support/svc.ts';
import { createTestCa } from './support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';

// Servers of a company's network on a port of their own, with certificates of a private CA. Nothing but their names opens them.

const API = 'api.example.test';
const GIT = 'git.example.test';
const S3 = 's3.example.test';
const TOKEN = plantSecret();
const PASSWORD = plantSecret();
const KEYS = { accessKeyId: 'AKIAE2EEXAMPLE000001', secretAccessKey: plantSecret() };
let api: TlsUpstream;
let standard: TlsUpstream;
let git: GitUpstream;
let s3: S3Upstream;
let svc: Svc;
let folder: string;

beforeAll(async () => {
  const ca = await createTestCa();
  api = await startTlsUpstream(await ca.issue([API]));
  standard = await startTlsUpstream(await ca.issue([API]));
  git = await startGitUpstream(await ca.issue([GIT]), 'octo', PASSWORD);
  s3 = await startS3Upstream(await ca.issue([S3]), KEYS, 'bucket');
  const resolve = [
    `${API}:127.0.0.1:${standard.port}`,
    `${API}:8443:127.0.0.1:${api.port}`,
    `${GIT}:8443:127.0.0.1:${git.port}`,
    `${S3}:9000:127.0.0.1:${s3.port}`,
  ];
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
  await svc.secret('user/api', TOKEN);
  await svc.secret('user/git', PASSWORD);
  await svc.secret('user/aws', KEYS.secretAccessKey);
  folder = mkdtempSync(join(tmpdir(), 'svc-other-ports-'));
});
afterAll(async () => {
  await svc.stop();
  await Promise.all([api.close(), standard.close(), git.close(), s3.close()]);
});
beforeEach(() => {
  api.reset();
  standard.reset();
});

function curl(url: string, options: readonly string[] = []): Promise<string> {
  const command = ['curl', '-sS', '-w', ' %{http_code} %{http_connect}', url];
  return svc.ok(['run', ...options, '--', 'sh', '-c', '"$@" 2>&1; true', 'sh', ...command], { cwd: folder });
}

/** The same in a session that no command and no folder adds to. */
async function plainCurl(url: string, ...more: string[]): Promise<string> {
  const { stdout, stderr } = await curlInSession(svc, ['-w', ' %{http_code} %{http_connect}', ...more, url]);
  return stderr + stdout;
}

async function eventsAt(host: string): ReturnType<Svc['events']> {
  return (await svc.events()).filter(({ data }) => data['svc.proxy.upstream.host'] === host);
}

describe('a port other than 443', () => {
  it('is refused until something names it, and the refusal names the command', async () => {
    expect(await curl(`https://${API}:8443/a`)).toMatch(/ 000 403$/);
    const said = await plainCurl(`https://${API}:8443/a`, '-v');
    expect(said).toMatch(/403 Forbidden/);
    expect(api.requests).toEqual([]);
    const [event] = await eventsAt(`${API}:8443`);
    expect(event).toMatchObject({
      type: 'sandbox.proxy.rejected',
      data: { 'svc.proxy.reason': 'connect_port_not_allowed' },
    });
  });

  it('is reached where the run names it, without any credential', async () => {
    expect(await curl(`https://${API}:8443/a`, ['--allow', `${API}:8443`])).toBe('ok 200 200');
    expect(api.last().headers('authorization')).toEqual([]);
    expect(api.last().headers('host')).toEqual([`${API}:8443`]);
  });

  it('is reached in the folders for which a person allowed it', async () => {
    await svc.ok(['allow', `${API}:8443`, '--folder', folder]);
    expect(await curl(`https://${API}:8443/a`)).toBe('ok 200 200');
    await svc.ok(['allow', '--remove', `${API}:8443`, '--folder', folder]);
    expect(await curl(`https://${API}:8443/a`)).toMatch(/ 000 403$/);
  });

  it('has a binding of its own, which port 443 has not', async () => {
    await svc.binding({ host: `${API}:8443`, scheme: 'bearer', credential_ref: 'vault://user/api' });
    expect(await plainCurl(`https://${API}:8443/a`)).toBe('ok 200 200');
    expect(api.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    expect(await plainCurl(`https://${API}/a`)).toBe('ok 200 200');
    expect(standard.last().headers('authorization')).toEqual([]);
    expect(await plainCurl(`https://${API}:9443/a`)).toMatch(/ 000 403$/);
    const wrong = await plainCurl(`https://${API}:8443/a`, '-H', `Host: ${API}`);
    expect(wrong).toMatch(/authority_mismatch[^]* 421 200$/);
    expect(api.requests).toHaveLength(1);
    const events = await eventsAt(`${API}:8443`);
    expect(events.filter(({ type }) => type === 'sandbox.proxy.binding_injected')).toHaveLength(1);
    const explained = await svc.ok(['explain', 'GET', `https://${API}:8443/a`]);
    expect(explained).toContain(`${API}:8443 matches a personal binding`);
  });

  it("serves git's clone and push with basic authentication", async () => {
    await svc.binding({
      host: `${GIT}:8443`,
      scheme: 'basic',
      username: 'octo',
      credential_ref: 'vault://user/git',
    });
    const work = mkdtempSync(join(tmpdir(), 'svc-e2e-clone-'));
    await svc.ok(['run', '--', 'sh', '-ec', pushScript(`https://${GIT}:8443/project.git`)], { cwd: work });
    expect(git.git('log', '-1', '--format=%s', 'main')).toBe(`${PUSHED}\n`);
  });

  it('is in the signature of a request that is signed anew', async () => {
    await svc.binding({
      host: `${S3}:9000`,
      scheme: 'sigv4-resign',
      credential_ref: 'vault://user/aws',
      access_key_id: KEYS.accessKeyId,
      region: 'eu-north-1',
      service: 's3',
    });
    const signed = ['--aws-sigv4', 'aws:amz:eu-north-1:s3', '--user', `${KEYS.accessKeyId}:not-the-key`];
    expect(await plainCurl(`https://${S3}:9000/bucket/one`, ...signed, '-X', 'PUT', '-d', 'content')).toMatch(
      / 200 200$/,
    );
    expect(s3.verdicts).toMatchObject([{ ok: true }]);
    expect(s3.tls.last().headers('host')).toEqual([`${S3}:9000`]);
  });
});
