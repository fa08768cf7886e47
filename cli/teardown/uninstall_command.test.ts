import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../machine/sha256.ts';
import { identify } from '../../machine/process_identity.ts';
import { UpLock } from '../up/up_lock.ts';
import { runCli, TestHome, type RunOptions, type RunResult } from '../testing/run_cli.ts';

/** The user's home directory and working directory are the test home; the state directory to delete is another one. */
let home: TestHome;
let folder: string;
let state: string;
beforeEach(() => {
  home = new TestHome();
  folder = mkdtempSync(join(tmpdir(), 'svc-uninstall-'));
  state = join(folder, 'state');
  mkdirSync(state);
  writeFileSync(join(state, 'local.key'), 'key');
});
afterEach(() => {
  home.remove();
  rmSync(folder, { recursive: true, force: true });
});

const uninstall = (path: string, args: readonly string[] = [], options: RunOptions = {}): Promise<RunResult> =>
  runCli(home, ['--home', path, 'uninstall', ...args], options);

describe('svc uninstall', () => {
  test('deletes nothing that holds the working directory, also if a link leads there', async () => {
    const workingDirectory = join(folder, 'link', 'work');
    mkdirSync(join(state, 'work'));
    symlinkSync(state, join(folder, 'link'));
    const run = await uninstall(state, ['--yes'], { workingDirectory });
    expect(run.stderr).toContain('nothing was deleted');
    expect(existsSync(state)).toBe(true);
  });

  test('deletes the state directory with --yes, and says what is left elsewhere', async () => {
    const run = await uninstall(state, ['--yes']);
    expect(run).toMatchObject({ code: 0, stdout: `deleted ${state}\n` });
    expect(run.stderr).toContain('Not deleted');
    expect(existsSync(state)).toBe(false);
  });

  test('leaves what svc did not make, and the directory with it', async () => {
    const own = ['control.db', 'control.db-wal', 'run.json', 'run.json.4711', 'up.lock', 'local.key.0123456789ab.tmp'];
    own.push('trusted_folders.json', 'trusted_secrets.json', 'trusted_folders.lock');
    for (const name of [...own, 'control.db.backup', 'notes.txt']) writeFileSync(join(state, name), '');
    mkdirSync(join(state, 'sidecar', 'spool'), { recursive: true });
    mkdirSync(join(state, 'project'));
    const run = await uninstall(state, ['--yes', '--json']);
    expect(JSON.parse(run.stdout)).toEqual({ deleted: state, kept: ['control.db.backup', 'notes.txt', 'project'] });
    expect(run.stderr).toContain(`${state} stays`);
    expect(readdirSync(state)).toEqual(['control.db.backup', 'notes.txt', 'project']);
  });

  test('says how to find the homes of agents at an engine that does not answer', async () => {
    const endpoint = `unix://${join(folder, 'none.sock')}`;
    writeFileSync(join(state, 'agent_homes.json'), JSON.stringify({ endpoints: [endpoint] }));
    const label = homeLabelOf(state);
    const run = await uninstall(state, ['--yes']);
    expect(run.stderr).toContain(`the homes of agents at ${endpoint} are not known`);
    expect(run.stderr).toContain(`docker volume ls --filter label=svc.home=${label}`);
  });

  test('asks for the whole word at a terminal', async () => {
    expect(await uninstall(state, [], { terminal: true, typed: ['y'] })).toMatchObject({ code: 1 });
    expect(existsSync(state)).toBe(true);
    expect(await uninstall(state, [], { terminal: true, typed: ['delete'] })).toMatchObject({ code: 0 });
    expect(existsSync(state)).toBe(false);
  });

  test.each<[string, RunOptions]>([
    ['Ctrl-C', { typed: ['delete'], stop: AbortSignal.abort('SIGINT') }],
    ['the end of the input', { typed: [] }],
  ])('leaves everything as it was at %s', async (_what, options) => {
    const before = readdirSync(state);
    const run = await uninstall(state, [], { terminal: true, ...options });
    expect(run).toMatchObject({ code: 1, stdout: '' });
    expect(run.stderr).toContain('nothing was deleted');
    expect(readdirSync(state)).toEqual(before);
  });

  test('deletes nothing if svc was started while it asked', async () => {
    const start = function* (): Generator<string> {
      expect(UpLock.take(state, process.ppid)).toMatchObject({ kind: 'taken' });
      yield 'delete';
    };
    const run = await uninstall(state, [], { terminal: true, typed: start() });
    expect(run.stderr).toContain('svc is running');
    expect(existsSync(join(state, 'local.key'))).toBe(true);
  });

  test('deletes nothing without a terminal and without --yes', async () => {
    expect(await uninstall(state)).toMatchObject({ code: 2 });
    expect(existsSync(state)).toBe(true);
  });

  test('deletes nothing while signed in to a control plane elsewhere', async () => {
    const tokens = { access_token: 'a', refresh_token: 'b', access_expires_at_ms: 0 };
    const signIn = { version: 1, control_url: 'https://svc.example.test', ...tokens };
    writeFileSync(join(state, 'sign_in.json'), JSON.stringify(signIn), { mode: 0o600 });
    const run = await uninstall(state, ['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('svc logout');
    expect(existsSync(state)).toBe(true);
  });

  test('deletes nothing while svc is installed as a service, which would start again', async () => {
    const name = `svc-${sha256Hex(state).slice(0, 8)}`;
    const unit = join(home.path, '.config', 'systemd', 'user', `${name}.service`);
    mkdirSync(dirname(unit), { recursive: true });
    writeFileSync(unit, '');
    const env = { XDG_CONFIG_HOME: 'relative' };
    const run = await uninstall(state, ['--yes'], { env });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`svc is installed as a service (${unit}): nothing was deleted`);
    expect(existsSync(state)).toBe(true);
    rmSync(unit);
    expect(await uninstall(state, ['--yes'], { env })).toMatchObject({ code: 0 });
  });

  test('deletes nothing while svc runs', async () => {
    const lock = { supervisor: identify(process.pid), programs: [] };
    writeFileSync(join(state, 'up.lock'), JSON.stringify(lock), { mode: 0o600 });
    const run = await uninstall(state, ['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('svc down');
    expect(existsSync(state)).toBe(true);
  });

  test.each([
    ['a folder that is not a state directory', () => folder],
    ['a folder that does not exist', () => join(folder, 'gone')],
    ['a program with a folder called sidecar', () => join(folder, 'program')],
    ['a link to a state directory', () => join(folder, 'link')],
    ["the user's home directory", () => home.path],
    ['a folder above it', () => tmpdir()],
    ['the root', () => '/'],
  ])('deletes nothing of %s', async (_what, path) => {
    symlinkSync(state, join(folder, 'link'));
    mkdirSync(join(folder, 'program', 'sidecar'), { recursive: true });
    const run = await uninstall(path(), ['--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('nothing was deleted');
    expect([existsSync(join(state, 'local.key')), existsSync(home.path)]).toEqual([true, true]);
  });
});
