import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSession, type SvcSession, SvcSessionError } from '../cli/sdk/create_session.ts';
import { plantSecret } from './support/planted_secret.ts';
import { INSTALLED, ROOT, run, runOk, systemPath } from './support/program.ts';
import { Svc } from './support/svc.ts';
import { createTestCa, type TestCa } from './support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from './support/tls_upstream.ts';

// `createSession()` of the package's svc/session: a program of somebody else runs a program in a session.

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const MODULE = INSTALLED === ROOT ? 'cli/sdk/create_session.ts' : 'sdk/session.js';

/** What such a program looks like. */
const LAUNCHER = `
import { execFileSync } from 'node:child_process';
import { createSession } from ${JSON.stringify(pathToFileURL(join(INSTALLED, MODULE)).href)};
const session = await createSession({ name: 'of a launcher', inherit: process.env });
try {
  const said = execFileSync('curl', ['-sS', '--fail', 'https://${HOST}/'], { env: session.environment, encoding: 'utf8' });
  process.stdout.write(JSON.stringify({ id: session.id, said, names: Object.keys(session.environment) }));
} finally {
  await session.end();
}
`;

describe('createSession', () => {
  let ca: TestCa;
  let upstream: TlsUpstream;
  let svc: Svc;
  const open: SvcSession[] = [];
  const create = async (options: Parameters<typeof createSession>[0] = {}): Promise<SvcSession> => {
    const session = await createSession({ home: svc.home, ...options });
    open.push(session);
    return session;
  };

  beforeAll(async () => {
    ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST, 'other.example.test']));
    const resolve = [HOST, 'other.example.test'].map((host) => `${host}:127.0.0.1:${upstream.port}`);
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
    await svc.secret('user/api', TOKEN);
    await svc.ok(['binding', 'add', HOST, '--scheme', 'bearer', '--credential', 'vault://user/api']);
    // It waits until the sidecar has that binding; createSession() does so only with `minPolicyVersion`.
    await svc.ok(['run', '--', 'true']);
  });
  afterAll(async () => {
    await svc.stop();
    await upstream.close();
  });
  beforeEach(async () => {
    await Promise.all(open.splice(0).map((session) => session.end()));
    upstream.reset();
  });

  it('gives a program of somebody else the environment for one that needs a credential', async () => {
    const env = {
      PATH: systemPath(),
      SVC_HOME: svc.home,
      SVC_VAULT_KEY: 'not for anybody',
      HTTPS_PROXY: 'http://127.0.0.1:9',
    };
    const args = ['--input-type=module', '--eval', LAUNCHER];
    const { stdout } = await runOk(process.execPath, args, { env });
    expect(upstream.requests.at(-1)?.headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    expect(stdout).not.toContain(TOKEN);
    const said: { id: string; names: readonly string[] } = JSON.parse(stdout);
    expect(said.names).toEqual(expect.arrayContaining(['PATH', 'HTTPS_PROXY', 'SSL_CERT_FILE']));
    expect(said.names.filter((name) => name === 'SVC_VAULT_KEY' || name === 'SVC_HOME')).toEqual([]);
    const events = await svc.events();
    expect(events.filter((event) => event.session_id === said.id).map(({ type }) => type)).toContain(
      'sandbox.proxy.binding_injected',
    );
    expect(await svc.ok(['sessions', 'list', '--json'])).not.toContain(said.id);
  });

  it('inherits nothing unless it is told to', async () => {
    const session = await create();
    expect(session.environment).not.toHaveProperty('PATH');
    expect(session.environment['HTTPS_PROXY']).toBe(session.proxyUrl);
    expect(session.ca).toMatch(/^-----BEGIN CERTIFICATE-----/);
    expect(session.expiresAt.getTime()).toBeGreaterThan(Date.now());
  });

  it('allows only the hosts that it names', async () => {
    const session = await create({ allowOnly: ['nothing.example.test'] });
    const env = { ...session.environment, PATH: systemPath() };
    expect((await run('curl', ['-sS', '--fail', 'https://other.example.test/'], { env })).code).not.toBe(0);
    expect((await run('curl', ['-sS', '--fail', `https://${HOST}/`], { env })).code).toBe(0);
  });

  it('is over for its program after the end, which may be called twice and by await using', async () => {
    let env: Record<string, string>;
    {
      await using session = await create();
      env = { ...session.environment, PATH: systemPath() };
      expect((await run('curl', ['-sS', '--fail', `https://${HOST}/`], { env })).code).toBe(0);
      await session.end();
      await session.end();
    }
    expect((await run('curl', ['-sS', '--fail', `https://${HOST}/`], { env })).code).not.toBe(0);
  });

  it('ends with the process that made it, also if that is killed', async () => {
    const dying = `${LAUNCHER.replace(/try \{[^]*/, '')} process.stdout.write(session.id); process.kill(process.pid, 'SIGKILL');`;
    const env = { PATH: systemPath(), SVC_HOME: svc.home };
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', dying], { env });
    expect(stdout).toMatch(/^ses_/);
    await expect.poll(async () => await svc.ok(['sessions', 'list', '--json'])).not.toContain(stdout);
  });

  it.each([
    ['a home without svc', { home: '/nowhere' }, 'not_running'],
    ['a field that the sidecar refuses', { ttlSeconds: 0 }, 'invalid_input'],
    ['a host that is none', { allowOnly: ['https://example.com/'] }, 'invalid_input'],
    ['a reference that is none', { use: ['user/api'] }, 'invalid_input'],
  ])('says why there is no session: %s', async (_what, options, code) => {
    const failed = await create(options).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(SvcSessionError);
    expect(failed).toMatchObject({ code });
  });
});
