import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UpLock } from '../up/up_lock.ts';
import { ME, SESSION } from '../testing/session_samples.ts';
import { runCli, TestHome, type Answer, type RunOptions } from '../testing/run_cli.ts';

const PATH = 'user/github-work';
const TEXT = `secrets = ["${PATH}"]\n`;

let home: TestHome;
let project: string;
beforeEach(() => {
  home = new TestHome();
  project = join(realpathSync(home.path), 'project');
  mkdirSync(join(project, 'below'), { recursive: true });
});
afterEach(() => home.remove());

const TIMES = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' };
const bindingOf = (number: number, path: string, host = 'api.example.test'): object => ({
  id: `bnd_${String(number).padStart(26, '0')}`,
  ...TIMES,
  owner: 'personal',
  host,
  scheme: 'bearer',
  credential_ref: `vault://${path}`,
  emit_mechanism: 'sentinel-swap',
  sentinel: { value: `placeholder-number-${number}` },
  allowed_hosts: [],
  body: 'buffer',
});
const answer: Answer = ({ method, url }) => {
  if (url.pathname === '/v1/me') return { status: 200, body: ME };
  if (url.pathname === '/v1/host-bindings') {
    return { status: 200, body: { items: [bindingOf(1, 'user/github'), bindingOf(2, PATH)], next_cursor: null } };
  }
  if (method === 'POST' && url.pathname.endsWith('/sessions')) return { status: 201, body: SESSION };
  if (url.pathname === '/v1/secrets/check') return { status: 200, body: { matches: [] } };
  return { status: 200, body: { items: [], next_cursor: null } };
};

const trust = (argv: readonly string[] = [], options: RunOptions = {}): ReturnType<typeof runCli> =>
  runCli(home, ['trust', ...argv], { workingDirectory: project, answer, ...options });
const file = (): string => join(project, '.svc.toml');
const store = (): string => join(home.path, 'trusted_folders.json');

/** What a run from this folder asks of the sidecar; undefined if it starts nothing. */
async function used(folder: string, argv: readonly string[] = [], options: RunOptions = {}) {
  const run = await runCli(home, ['run', ...argv, '--', 'true'], { workingDirectory: folder, answer, ...options });
  const created = run.calls.find(({ method, url }) => method === 'POST' && url.pathname.endsWith('/sessions'));
  return { run, body: created?.body };
}
const OUTER = {
  session_id: 'ses_1',
  name: null,
  created_at: TIMES.created_at,
  expires_at: TIMES.created_at,
  open_tunnels: 0,
};
const byFolder = { reference: `vault://${PATH}`, by: 'folder' };
/** A terminal in a session that chose these secrets. */
const insideWith = (used_secrets: readonly object[], more: object = {}): RunOptions => ({
  env: { SVC_SESSION_ID: 'ses_1' },
  answer: (request) =>
    request.method === 'GET' && request.url.pathname.endsWith('/sessions')
      ? { status: 200, body: { items: [{ ...OUTER, ...more, used_secrets }] } }
      : answer(request),
});

test.each([
  ['{"version":2,"folders":{}}', 'version is not as expected'],
  ['{"version":1,"folders":{"/p":{}}}', 'folders./p.sha256 is missing'],
  ['{"version":1,"folders":{"/p":{"sha256":["a"]}}}', 'folders./p.sha256 is not as expected'],
  ['{"version":1,"folders":{"__proto__":{"sha256":"a"}}}', 'folders.__proto__ is not known'],
  ['{"version":1,"folders":[]}', 'folders is not as expected'],
  ['{"version":1,"fold', 'its content is not as expected'],
])('starts nothing by a damaged list of confirmed folders: %s', async (text, problem) => {
  home.write('trusted_folders.json', text);
  const { run, body } = await used(project);
  expect([run.code, run.stderr]).toEqual([125, expect.stringContaining(`is damaged: ${problem}\n`)]);
  expect(body).toBeUndefined();
});

describe('svc trust', () => {
  test('shows the secrets with their hosts, and stores the hash of what it showed', async () => {
    writeFileSync(file(), TEXT);
    const done = await trust([], { terminal: true, typed: ['y'] });
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining(`vault://${PATH} for api.example.test`)]);
    const sha256 = execFileSync('sha256sum', [file()], { encoding: 'utf8' }).split(' ')[0];
    expect(JSON.parse(readFileSync(store(), 'utf8'))).toEqual({ version: 1, folders: { [project]: { sha256 } } });
    expect(statSync(store()).mode & 0o777).toBe(0o600);
    const list = await trust(['--list', '--json']);
    expect(JSON.parse(list.stdout)).toEqual({
      items: [{ folder: project, state: 'confirmed', secrets: [`vault://${PATH}`] }],
    });
  });

  test('names the hosts below a wildcard that other secrets are bound to', async () => {
    writeFileSync(file(), TEXT);
    const items = [
      bindingOf(1, PATH, '*.example.test'),
      bindingOf(2, 'user/github'),
      bindingOf(3, 'user/github', 'api.elsewhere.test'),
      bindingOf(4, 'user/github', 'up.example.test'),
      bindingOf(5, PATH, 'up.example.test'),
    ];
    const done = await trust(['--yes'], {
      answer: (request) =>
        request.url.pathname === '/v1/host-bindings'
          ? { status: 200, body: { items, next_cursor: null } }
          : answer(request),
    });
    expect(done.stderr).toContain(
      `vault://${PATH} for *.example.test, up.example.test, but not for api.example.test, which is bound to other secrets only\n`,
    );
  });

  test('says that it does not know the hosts if the control plane is away', async () => {
    writeFileSync(file(), TEXT);
    const done = await runCli(home, ['trust', '--yes'], { workingDirectory: project });
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('it is not known for which hosts these are')]);
  });

  test.each([
    ['at a terminal, anything but yes', { terminal: true, typed: ['n'] }, 1],
    ['without a terminal and --yes', {}, 2],
    ['inside a session', { env: { SVC_SESSION_ID: 'ses_1' }, terminal: true, typed: ['y'] }, 1],
  ])('confirms nothing: %s', async (_what, options, code) => {
    writeFileSync(file(), TEXT);
    expect((await trust([], options)).code).toBe(code);
    expect(existsSync(store())).toBe(false);
  });

  test('confirms what it showed, not what the file says by the time of the answer', async () => {
    writeFileSync(file(), TEXT);
    const typed = ['y'];
    Object.defineProperty(typed, 0, { get: () => (writeFileSync(file(), 'secrets = ["user/github"]'), 'y') });
    expect((await trust([], { terminal: true, typed })).code).toBe(0);
    const sha256 = createHash('sha256').update(TEXT).digest('hex');
    expect(JSON.parse(readFileSync(store(), 'utf8'))).toEqual({ version: 1, folders: { [project]: { sha256 } } });
    expect((await used(project)).body).toBeUndefined();
  });

  test('does not confirm a file that a session would refuse', async () => {
    writeFileSync(file(), 'secrets = ["user/githib"]');
    const done = await trust(['--yes']);
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('did you mean "user/github"?')]);
    writeFileSync(file(), 'other = 1');
    expect((await trust(['--yes'])).code).toBe(1);
    writeFileSync(file(), Buffer.from([0x23, 0xff, 0x0a]));
    expect((await trust(['--yes'])).stderr).toContain('it is not UTF-8');
    expect(existsSync(store())).toBe(false);
  });

  test('follows no link, waits for no pipe, and reads no large file', async () => {
    const target = home.write('target.toml', TEXT);
    symlinkSync(target, file());
    expect((await trust(['--yes'])).stderr).toContain('it is a link, and svc follows none');
    rmSync(file());
    execFileSync('mkfifo', [file()]);
    expect((await trust(['--yes'])).stderr).toContain('it is not a file');
    rmSync(file());
    writeFileSync(file(), `${TEXT}#${'x'.repeat(16 * 1024)}`);
    expect((await trust(['--yes'])).stderr).toContain('larger than 16 KiB');
    expect(existsSync(store())).toBe(false);
  });

  test('changes nothing while another command changes the list', async () => {
    writeFileSync(file(), TEXT);
    const held = UpLock.take(home.path, process.ppid, 'trusted_folders.lock');
    const run = await trust(['--yes']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('another command is changing the list')]);
    expect(existsSync(store())).toBe(false);
    if (held.kind === 'taken') held.lock.release();
    expect((await trust(['--yes'])).code).toBe(0);
  });

  test('--remove ends its effect, also of a folder that is gone', async () => {
    writeFileSync(file(), TEXT);
    await trust(['--yes']);
    rmSync(project, { recursive: true });
    const inside = await trust(['--remove', project], {
      workingDirectory: home.path,
      env: { SVC_SESSION_ID: 'ses_1' },
    });
    expect(inside.code).toBe(1);
    expect((await trust(['--remove', project], { workingDirectory: home.path })).code).toBe(0);
    expect((await trust(['--list', '--json'], { workingDirectory: home.path })).stdout).toContain('"items":[]');
  });
});

describe('a run in a folder with a .svc.toml', () => {
  test('uses its secrets there and below, once it is confirmed', async () => {
    writeFileSync(file(), TEXT);
    const before = await used(project);
    expect(before.body).not.toHaveProperty('use_secrets');
    expect(before.run.stderr).toContain(`nobody confirmed it here: svc trust ${project}`);
    await trust(['--yes']);
    for (const folder of [project, join(project, 'below')]) {
      expect((await used(folder)).body).toMatchObject({ use_secrets: [{ ...byFolder, from: project }] });
    }
    expect((await used(home.path)).body).not.toHaveProperty('use_secrets');
  });

  test('asks again at a terminal if it was changed, and starts nothing without a yes', async () => {
    writeFileSync(file(), TEXT);
    await trust(['--yes']);
    writeFileSync(file(), `${TEXT}# changed\n`);
    expect((await used(project)).body).toBeUndefined();
    const declined = await used(project, [], { terminal: true, typed: ['n'] });
    expect([declined.run.code, declined.body]).toEqual([125, undefined]);
    const confirmed = await used(project, [], { terminal: true, typed: ['y'] });
    expect(confirmed.body).toMatchObject({ use_secrets: [byFolder] });
    expect((await used(project)).body).toMatchObject({ use_secrets: [byFolder] });
  });

  test.each([
    ['a new secret', `secrets = ["${PATH}", "user/github"]`, 'new since it was confirmed: vault://user/github'],
    ['another secret', 'secrets = ["user/github"]', `no longer in it: vault://${PATH}`],
  ])('shows what has changed: %s', async (_what, text, shown) => {
    writeFileSync(file(), TEXT);
    const first = await trust(['--yes']);
    expect(first.stderr).not.toContain('confirmed:');
    writeFileSync(file(), text);
    expect((await trust(['--yes'])).stderr).toContain(shown);
    expect((await trust(['--yes'])).stderr).not.toContain(shown);
  });

  test('shows that the order has changed, and nothing where an earlier svc kept no list', async () => {
    writeFileSync(file(), `secrets = ["${PATH}", "user/github"]`);
    await trust(['--yes']);
    writeFileSync(file(), `secrets = ["user/github", "${PATH}"]`);
    expect((await trust(['--yes'])).stderr).toContain('the order has changed');
    rmSync(join(home.path, 'trusted_secrets.json'));
    writeFileSync(file(), TEXT);
    expect((await trust(['--yes'])).stderr).not.toContain('no longer');
  });

  test('starts nothing if it is gone, until a person ends its effect', async () => {
    writeFileSync(file(), TEXT);
    await trust(['--yes']);
    rmSync(file());
    const refused = await used(join(project, 'below'));
    expect([refused.run.code, refused.body]).toEqual([125, undefined]);
    expect(refused.run.stderr).toContain(`svc trust --remove ${project}`);
    await trust(['--remove']);
    expect((await used(project)).body).not.toHaveProperty('use_secrets');
  });

  test('inside a session, no other account is chosen', async () => {
    const work = { ...byFolder, from: project };
    const chosen = insideWith([work]);
    for (const argv of [
      ['--use', 'user/github'],
      ['--use', PATH, '--use', 'user/github'],
    ]) {
      const { run, body } = await used(project, argv, chosen);
      expect([run.code, body]).toEqual([125, undefined]);
      expect(run.stderr).toContain(`uses ${PATH}, and may not change that`);
    }
    expect((await used(home.path, [], chosen)).body).toMatchObject({ use_secrets: [work] });
    writeFileSync(file(), 'secrets = ["user/github"]');
    await trust(['--yes']);
    expect((await used(project, [], chosen)).body).toBeUndefined();
    expect((await used(project, [], insideWith([]))).body).toMatchObject({ use_secrets: [{ by: 'folder' }] });
    const ended = { ...chosen, env: { SVC_SESSION_ID: 'ses_2' } };
    expect((await used(home.path, [], ended)).body).toBeUndefined();
  });

  test('inside a session with a limit of requests, no other session is started', async () => {
    for (const limit of [
      { requests_per_day: 5 },
      { requests_per_minute: 5, requests_per_day: null },
      { bytes_per_day: 5 },
    ]) {
      const { run, body } = await used(home.path, [], insideWith([], limit));
      expect([run.code, body]).toEqual([125, undefined]);
      expect(run.stderr).toContain('inside a session with a limit of requests');
    }
    const none = { requests_per_minute: null, requests_per_day: null, bytes_per_day: null };
    expect((await used(home.path, [], insideWith([], none))).run.code).toBe(0);
  });

  test('--use comes before it', async () => {
    writeFileSync(file(), TEXT);
    await trust(['--yes']);
    const { body } = await used(project, ['--use', 'vault://user/github']);
    expect(body).toMatchObject({ use_secrets: [{ reference: 'vault://user/github', by: 'option' }, byFolder] });
    const { run } = await used(project, ['--use', `ghp_${'a'.repeat(36)}`]);
    expect([run.code, run.stderr]).toEqual([125, expect.not.stringContaining('ghp_a')]);
  });
});
