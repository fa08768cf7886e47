import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { identify } from '../../machine/process_identity.ts';
import { identityPath, generateSidecarKeys, saveIdentity } from '../../machine/sidecar_identity.ts';
import { type Answer, runCli, type RunOptions, TestHome } from '../testing/run_cli.ts';

const SESSION = `ses_${'a'.repeat(26)}`;
const SIDECAR = `sdc_${'0'.repeat(26)}`;
const report = z.object({
  processes_ended: z.array(z.number()),
  sidecar_revoked: z.boolean(),
  service_removed: z.string().nullable(),
  tokens_revoked: z.array(z.string()),
  tokens_left: z.array(z.string()),
  logins_deleted: z.array(z.string()),
  stopped: z.boolean(),
  not_done: z.array(z.string()),
});

let home: TestHome;
let children: ChildProcess[];
beforeEach(() => {
  home = new TestHome();
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  home.remove();
});

/** Neither svc runs here, nor was a sidecar ever enrolled. */
function nothingRuns(): void {
  for (const name of ['run.json', join('sidecar', 'host.token')]) rmSync(join(home.path, name));
}

function sleeper(): { readonly pid: number; readonly started: string | null } {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  children.push(child);
  const found = identify(child.pid ?? 0);
  if (found === null) throw new Error('it has ended');
  return found;
}

async function enrol(): Promise<void> {
  const keys = await generateSidecarKeys();
  const pinned = { kty: 'OKP' as const, crv: 'Ed25519' as const, x: keys.signing.x };
  const ids = { sidecar_id: SIDECAR, control_plane_id: `cpl_${'0'.repeat(26)}`, control_plane_key: pinned };
  const record = { version: 1 as const, ...ids, signing_key: keys.signing, receiving_key: keys.receiving };
  await saveIdentity(identityPath(join(home.path, 'sidecar')), record);
}

const answerWith =
  (sessions: readonly object[]): Answer =>
  ({ method, url }) => {
    if (url.pathname === '/v1/pending-logins') return { status: 200, body: { discarded: [] } };
    if (method === 'DELETE') return { status: 204 };
    const isSessions = url.pathname === '/v1/sandbox-proxy/sessions';
    return { status: 200, body: { items: isSessions ? sessions : [], next_cursor: null } };
  };

const live = (change: object): object => ({
  session_id: SESSION,
  name: null,
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-02T00:00:00Z',
  open_tunnels: 0,
  ...change,
});

const sampleOAuthConnector = (fqn: string, at: number) => ({
  id: `con_${String(at).padStart(26, '0')}`,
  owner: 'personal',
  fqn,
  version: '1.0.0',
  title: fqn,
  content_hash: 'a'.repeat(64),
  hosts: ['api.example.test'],
  operation_count: 1,
  active: true,
  credential: {
    kind: 'oauth2',
    ref: `vault://connectors/${fqn}`,
    state: 'ready',
    updated_at: '2026-01-01T00:00:00.000Z',
    expires_at: null,
    client_id: 'client',
    token_url: 'https://auth.example.test/token',
    scopes: [],
    renewable: true,
  },
  installed_by: `usr_${'0'.repeat(26)}`,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
});

async function panic(options: RunOptions = {}): Promise<z.infer<typeof report> & { code: number; deleted: string[] }> {
  const { code, stdout, calls } = await runCli(home, ['panic', '--yes', '--json'], options);
  const deletes = calls.filter(({ method }) => method === 'DELETE').map(({ url }) => url.pathname);
  const deleted = deletes.filter((path) => path !== '/v1/pending-logins');
  return { ...report.parse(JSON.parse(stdout)), code, deleted };
}

describe('svc panic', () => {
  test('does nothing, and says so, where nothing is', async () => {
    nothingRuns();
    expect(await panic()).toMatchObject({ code: 0, not_done: [], stopped: false });
  });

  test('does not say that all is done for a state directory that does not exist', async () => {
    const done = await runCli(home, ['panic', '--yes', '--json', '--home', join(home.path, 'none')]);
    expect(report.parse(JSON.parse(done.stdout)).not_done).toEqual([expect.stringContaining('none does not exist')]);
    expect(done.code).toBe(1);
  });

  test('refuses a state directory that is a file', async () => {
    home.write('file', '');
    const done = await runCli(home, ['panic', '--yes', '--home', join(home.path, 'file')]);
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('is not a directory: nothing was stopped')]);
  });

  test('names the homes of agents, which stay and may hold what an agent wrote down', async () => {
    nothingRuns();
    expect((await runCli(home, ['panic', '--yes'])).stderr).not.toContain('svc agents homes');
    home.write('agent_homes.json', '{"endpoints":["unix:///run/docker.sock"]}');
    expect((await runCli(home, ['panic', '--yes'])).stderr).toContain('svc agents homes');
  });

  test('goes on if files of the state directory cannot be read or would block', async () => {
    await enrol();
    mkdirSync(join(home.path, 'sessions', SESSION, 'container.json'), { recursive: true });
    execFileSync('mkfifo', [join(home.path, 'sessions', SESSION, 'session.jws'), join(home.path, 'up.lock')]);
    mkdirSync(join(home.path, 'mcp'));
    writeFileSync(join(home.path, 'mcp', 'running'), 'no folder');
    const done = await panic({ answer: answerWith([]) });
    expect(done).toMatchObject({ code: 1, sidecar_revoked: true, deleted: [`/v1/sidecars/${SIDECAR}`] });
    expect(done.not_done.join('\n')).toContain('the MCP servers could not be stopped');
    expect(existsSync(join(home.path, 'sidecar', 'identity.json'))).toBe(false);
  });

  test('ends a launcher that only the sidecar knows', async () => {
    await enrol();
    const owner = sleeper();
    const done = await panic({ answer: answerWith([live({ owner })]) });
    expect(done).toMatchObject({ processes_ended: [owner.pid], not_done: [] });
    expect(identify(owner.pid)).toBeNull();
  });

  test('names a live session whose launcher was not found', async () => {
    await enrol();
    const done = await panic({ answer: answerWith([live({ owner: null })]) });
    expect(done.code).toBe(1);
    expect(done.not_done).toEqual([expect.stringContaining(`the launcher of session ${SESSION} was not found`)]);
  });

  test('names a sidecar that it could not revoke, because its identity is missing', async () => {
    const done = await panic({ answer: answerWith([]) });
    expect(done).toMatchObject({ code: 1, sidecar_revoked: false });
    expect(done.not_done).toEqual([expect.stringContaining('the sidecar was not revoked')]);
  });

  test('names that the live sessions are not known', async () => {
    await enrol();
    const { not_done: notDone } = await panic({ answer: ({ method }) => ({ status: method === 'GET' ? 500 : 204 }) });
    expect(notDone.toSorted()).toEqual([
      expect.stringContaining('the live sessions are not known'),
      expect.stringContaining('the logins that wait could not be deleted'),
      expect.stringContaining('the tokens of connectors could not be revoked'),
    ]);
  });

  test('has the tokens of connectors revoked, says which stay valid, and deletes logins that wait', async () => {
    await enrol();
    const waiting = `plg_${'0'.repeat(26)}`;
    const outcomes: Readonly<Record<string, object>> = {
      'login/codex': { outcome: 'revoked', message: null },
      'login/claude': { outcome: 'not_named', message: null },
      'acme/items': { outcome: 'failed', message: 'auth.example.test answered with status 503' },
    };
    const items = Object.keys(outcomes).map((fqn, at) => sampleOAuthConnector(fqn, at));
    const asked: string[] = [];
    const answer: Answer = (call) => {
      const { pathname, searchParams } = call.url;
      if (pathname === '/v1/pending-logins') return { status: 200, body: { discarded: [waiting] } };
      if (pathname === '/v1/connectors') {
        const isOwn = searchParams.get('owner') === 'personal';
        return { status: 200, body: { items: isOwn ? items : [], next_cursor: null } };
      }
      const revoked = items.find(({ id }) => pathname === `/v1/connectors/${id}/credential/revoke`);
      if (revoked === undefined) return answerWith([])(call);
      asked.push(revoked.fqn);
      return { status: 200, body: outcomes[revoked.fqn] };
    };
    const done = await panic({ answer });
    expect(asked).toEqual(Object.keys(outcomes));
    expect(done).toMatchObject({ code: 1, tokens_revoked: ['login/codex'], logins_deleted: [waiting] });
    expect(done.tokens_left).toEqual([
      expect.stringContaining('the tokens of login/claude stay valid at auth.example.test, because svc does not know'),
    ]);
    expect(done.not_done).toEqual([
      expect.stringContaining('because auth.example.test answered with status 503: end the login in the settings'),
    ]);
  });

  test('does not say that svc is stopped while a program of run.json runs', async () => {
    nothingRuns();
    const { pid } = sleeper();
    const run = {
      control_url: 'http://127.0.0.1:9',
      proxy_url: 'http://127.0.0.1:9',
      version: '4.0.0',
      started_at: '',
    };
    home.write('run.json', JSON.stringify({ ...run, control_pid: null, sidecar_pid: pid }));
    const done = await panic();
    expect(done).toMatchObject({ code: 1, stopped: false });
    expect(done.not_done.join('\n')).toContain(`kill -9 ${pid}`);
    expect(identify(pid)?.pid).toBe(pid);
  });

  test('deletes the local keys, of which there may be copies', async () => {
    await enrol();
    await panic({ answer: answerWith([]) });
    expect(existsSync(join(home.path, 'local.key'))).toBe(false);
    expect(existsSync(join(home.path, 'sidecar', 'host.token'))).toBe(false);
  });

  test("deletes the sidecar's keys even if its events cannot be kept", async () => {
    await enrol();
    // The time of the test is fixed, so this is where the events would go.
    const taken = join(home.path, 'sidecar', `spool.signed-out-${Date.parse('2026-01-01T12:00:00Z')}`);
    for (const folder of [taken, join(home.path, 'sidecar', 'spool')]) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'events'), 'event');
    }
    const done = await panic({ answer: answerWith([]) });
    expect(done.not_done).toEqual([expect.stringContaining("the sidecar's keys could not be deleted")]);
    expect(existsSync(join(home.path, 'sidecar', 'identity.json'))).toBe(false);
  });

  test('kills no process that a record names by its id alone', async () => {
    nothingRuns();
    const [server, known] = [sleeper(), sleeper()];
    mkdirSync(join(home.path, 'mcp', 'running'), { recursive: true });
    const record = { server: { ...server, started: null }, gateway: known, run_id: '0123456789abcdef' };
    home.write(join('mcp', 'running', `${server.pid}.json`), JSON.stringify(record));
    expect(await panic()).toMatchObject({ code: 0, processes_ended: [known.pid] });
    expect(identify(server.pid)).toEqual(server);
  });

  test('empties no folder that a link among the sessions points to', async () => {
    nothingRuns();
    const other = join(home.path, 'other');
    for (const folder of [other, join(home.path, 'sessions')]) mkdirSync(folder);
    for (const name of ['container.json', 'kept']) writeFileSync(join(other, name), '{}');
    symlinkSync(other, join(home.path, 'sessions', SESSION));
    await panic();
    expect(readdirSync(other)).toEqual(['container.json', 'kept']);
  });

  test.runIf(process.platform === 'linux')('removes the service, which would start svc again', async () => {
    nothingRuns();
    const bin = join(home.path, 'bin');
    mkdirSync(bin);
    home.write(join('bin', 'systemctl'), `#!/bin/sh\necho "$*" >> ${home.path}/calls\n`);
    chmodSync(join(bin, 'systemctl'), 0o755);
    const env = { PATH: `${bin}:/usr/bin:/bin`, XDG_CONFIG_HOME: undefined };
    expect((await runCli(home, ['service', 'install'], { env })).code).toBe(0);
    const { service_removed: removed } = await panic({ env });
    expect(existsSync(removed ?? home.path)).toBe(false);
    expect(readFileSync(join(home.path, 'calls'), 'utf8')).toContain('--user disable --now svc-');
  });

  test.runIf(process.getuid?.() === 0)('refuses the state directory of another user', async () => {
    execFileSync('chown', ['12345', home.path]);
    expect((await runCli(home, ['panic', '--yes'])).stderr).toContain('belongs to user 12345');
    expect(existsSync(join(home.path, 'local.key'))).toBe(true);
  });
});
