import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { InstallSpec } from '../../shared/mcp/package_command.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Npm } from './npm_program.ts';
import { PackageStore } from './package_store.ts';

const SPEC = { kind: 'npm' as const, name: '@acme/server', version: '1.0.0', isExact: true };
const never = new AbortController().signal;
const HASH = `sha512-${'A'.repeat(86)}==`;

let home: string;
let told: string[];
let npmCalls: string[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-packages-'));
  told = [];
  npmCalls = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const archive = (name: string) => ({
  version: '1.0.0',
  resolved: `http://r.example/${name}.tgz`,
  integrity: HASH,
});

function lockOf(greeting: object = {}): string {
  const packages = {
    '': {},
    'node_modules/@acme/server': archive('server'),
    'node_modules/greeting': { ...archive('greeting'), ...greeting },
  };
  return JSON.stringify({ lockfileVersion: 3, packages });
}

/** Writes what npm would: a lock file, or a package with a program that prints what its dependency says. */
const fakeNpm: Npm = (args, folder) => {
  npmCalls.push(args.join(' '));
  if (args[0] === 'install') writeFileSync(join(folder, 'package-lock.json'), lockOf());
  else if (args[0] === 'ci') writeServer(folder);
  return Promise.resolve(ok(undefined));
};

function writeServer(folder: string, bin: unknown = { server: 'cli.js' }): void {
  const modules = join(folder, 'node_modules');
  for (const inner of ['.bin', '@acme/server', 'greeting']) mkdirSync(join(modules, inner), { recursive: true });
  writeFileSync(join(modules, '@acme/server/package.json'), JSON.stringify({ name: SPEC.name, bin }));
  const program = '#!/usr/bin/env node\nconsole.log(require("greeting"), process.argv.slice(2).join());\n';
  writeFileSync(join(modules, '@acme/server/cli.js'), program, { mode: 0o755 });
  writeFileSync(join(modules, 'greeting/index.js'), 'module.exports = "hello 1.0.0";\n');
  symlinkSync('../@acme/server/cli.js', join(modules, '.bin/server'));
}

function open(npm: Npm = fakeNpm, pid = process.pid): PackageStore {
  return new PackageStore({ mcpHome: join(home, 'mcp'), env: {}, pid, npm });
}

const install = (store: PackageStore, spec: InstallSpec = SPEC) =>
  store.install(spec, { signal: never, tell: (text) => told.push(text) });
const packagesFolder = () => join(home, 'mcp', 'packages');
/** The folders of installed packages and of installs. */
const folders = () => readdirSync(packagesFolder()).filter((name) => !name.endsWith('.json'));
const outputOf = (program: string) => spawnSync(program, ['a', 'b'], { encoding: 'utf8' }).stdout;

async function installed(store = open()): Promise<{ readonly program: string; readonly folder: string }> {
  const done = await install(store);
  if (!done.ok) throw new Error(done.error);
  return { program: done.value.start.command[0] ?? '', folder: join(packagesFolder(), folders()[0] ?? '') };
}

describe('an install', () => {
  test('runs once for callers at the same time', async () => {
    const store = open();
    const [one, other] = await Promise.all([install(store), install(store)]);
    expect(one).toBe(other);
    expect(folders()).toHaveLength(1);
  });

  test('is only for its user', async () => {
    await installed();
    chmodSync(packagesFolder(), 0o777);
    expect(open().find(SPEC)).toBeNull();
    expect(await install(open())).toMatchObject({ ok: false, error: expect.stringContaining('only you can write') });
  });

  test('does not follow a link in place of its directory', async () => {
    mkdirSync(join(home, 'mcp'));
    mkdirSync(join(home, 'elsewhere'));
    symlinkSync(join(home, 'elsewhere'), packagesFolder());
    expect(await install(open())).toMatchObject({ ok: false });
    expect(readdirSync(join(home, 'elsewhere'))).toEqual([]);
  });
});

test('the plan for a damaged package is what its repair installs, whatever the registry has now', async () => {
  const store = open();
  const { folder } = await installed(store);
  rmSync(folder, { recursive: true });
  npmCalls = [];
  expect(await store.plan(SPEC, never)).toMatchObject({ ok: true, value: { lock: lockOf(), release: '1.0.0' } });
  expect(npmCalls).toEqual([]);
});

describe('an install that fails leaves nothing behind', () => {
  test.each<readonly [string, Npm, string]>([
    ['npm fails', () => Promise.resolve(err('no registry')), 'could not be resolved: no registry'],
    [
      'the lock file is refused',
      (_, folder) => {
        writeFileSync(join(folder, 'package-lock.json'), lockOf({ integrity: undefined }));
        return Promise.resolve(ok(undefined));
      },
      'has no SHA-256 or SHA-512 hash',
    ],
    [
      'npm changes the lock file',
      after('ci', (folder) => writeFileSync(join(folder, 'package-lock.json'), '{}')),
      'lock',
    ],
    [
      'there is a link to another place',
      after('ci', (folder) => symlinkSync('/etc/passwd', join(folder, 'node_modules', '.bin', 'a'))),
      'which is no file of the package',
    ],
    [
      'there is a link to another place, by way of the folder above',
      after('ci', (folder) => symlinkSync('../../..', join(folder, 'node_modules', '.bin', 'a'))),
      'which is no file of the package',
    ],
    [
      'there is a link among the files',
      after('ci', (folder) => symlinkSync('greeting', join(folder, 'node_modules', 'a'))),
      'which is no file of the package',
    ],
    [
      'a package brings the list of files',
      after('ci', (folder) => writeFileSync(join(folder, 'svc-files.json'), '')),
      '',
    ],
    ['it has no program', after('ci', (folder) => rewriteBin(folder, {})), 'has no program'],
    ['its program is not there', after('ci', (folder) => rewriteBin(folder, { other: 'x' })), 'does not have'],
    [
      'it has several programs',
      after('ci', (folder) => rewriteBin(folder, { a: 'a.js', b: 'b.js' })),
      'several programs',
    ],
    ['its program has a path', after('ci', (folder) => rewriteBin(folder, { '../../../../sh': 'x' })), 'does not have'],
  ])('%s', async (_, npm, said) => {
    expect(await install(open(npm))).toMatchObject({ ok: false, error: expect.stringContaining(said) });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });

  test('there is no npm', async () => {
    const store = new PackageStore({ mcpHome: join(home, 'mcp'), env: { PATH: home }, pid: process.pid });
    expect(await install(store)).toMatchObject({ ok: false, error: expect.stringContaining('npm is not on the PATH') });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });
});

const large =
  (bytes: number, waits: boolean): Npm =>
  async (args, folder, signal) => {
    const done = await fakeNpm(args, folder, signal);
    if (args[0] !== 'ci') return done;
    writeFileSync(join(folder, 'node_modules', 'large'), '');
    truncateSync(join(folder, 'node_modules', 'large'), bytes);
    if (waits) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return signal.aborted ? err('stopped') : done;
  };
const limited = (npm: Npm) =>
  new PackageStore({ mcpHome: join(home, 'mcp'), env: {}, pid: process.pid, npm, maxBytes: 1_000_000 });

describe('an install that grows too large', () => {
  test.each([
    ['is stopped while npm runs', true],
    ['is refused after it', false],
  ])('%s, and leaves nothing behind', async (_, waits) => {
    const done = await install(limited(large(1_000_001, waits)));
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining('larger than an install may be') });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });

  test('is allowed up to the limit', async () => {
    expect(await install(limited(large(900_000, false)))).toMatchObject({ ok: true });
  });
});

/** Does what npm does, and something more after one of its commands. */
function after(command: string, more: (folder: string) => void): Npm {
  return async (args, folder, signal) => {
    const done = await fakeNpm(args, folder, signal);
    if (args[0] === command) more(folder);
    return done;
  };
}

function rewriteBin(folder: string, bin: unknown): void {
  rmSync(join(folder, 'node_modules'), { recursive: true });
  writeServer(folder, bin);
}

test('a program of several is the one with the name of the package', async () => {
  const bin = { other: 'other.js', server: 'cli.js' };
  expect(await install(open(after('ci', (folder) => rewriteBin(folder, bin))))).toMatchObject({ ok: true });
});

describe('a damaged package', () => {
  test.each<readonly [string, (folder: string, program: string) => void]>([
    ['its folder is gone', (folder) => rmSync(folder, { recursive: true })],
    ['its program is gone', (_, program) => rmSync(program)],
    ['a file of a dependency is gone', (folder) => rmSync(join(folder, 'node_modules/greeting/index.js'))],
    ['a file is cut short', (folder) => truncateSync(join(folder, 'node_modules/@acme/server/cli.js'), 3)],
    [
      'its lock file has changed',
      (folder) => writeFileSync(join(folder, 'package-lock.json'), lockOf().replace('A', 'B')),
    ],
    ['its list of files has changed', (folder) => writeFileSync(join(folder, 'svc-files.json'), '[]')],
    [
      'its program is a link to another place',
      (_, program) => {
        rmSync(program);
        symlinkSync('/bin/true', program);
      },
    ],
  ])('is noticed and installed again: %s', async (_, damage) => {
    const store = open();
    const { program, folder } = await installed(store);
    damage(folder, program);
    expect(store.find(SPEC)).toBeNull();
    const again = await install(store);
    expect(again.ok && outputOf(again.value.start.command[0] ?? '')).toBe('hello 1.0.0 a,b\n');
    expect(told).toContain('@acme/server@1.0.0 is damaged and is installed again');
  });

  test('is installed again by its first lock file', async () => {
    const { folder } = await installed();
    rmSync(folder, { recursive: true });
    npmCalls = [];
    await install(open());
    expect(npmCalls).toEqual(['ci']);
  });

  test('may have further files, such as a cache of its program', async () => {
    const { folder } = await installed();
    writeFileSync(join(folder, 'node_modules', '.cache'), 'x');
    expect(open().find(SPEC)).not.toBeNull();
  });
});

const recordPath = () =>
  join(packagesFolder(), readdirSync(packagesFolder()).find((name) => name.endsWith('.json')) ?? '');

describe('install scripts', () => {
  const scripted = lockOf({ hasInstallScript: true });
  const npm: Npm = async (args, folder, signal) => {
    const done = await fakeNpm(args, folder, signal);
    if (args[0] === 'install') writeFileSync(join(folder, 'package-lock.json'), scripted);
    return done;
  };
  const withScripts = (scripts: readonly string[]) =>
    open(npm).install(SPEC, { signal: never, tell: () => {}, scripts });
  test('run of the packages that the person named', async () => {
    expect(await withScripts(['greeting@1.0.0'])).toMatchObject({
      ok: true,
      value: { ranScripts: ['greeting@1.0.0'] },
    });
    expect(npmCalls).toEqual(['install --package-lock-only', 'ci', 'rebuild greeting@1.0.0']);
    expect(open().find(SPEC)).toMatchObject({ withScripts: ['greeting@1.0.0'], ranScripts: ['greeting@1.0.0'] });
  });

  test('of a package that has none are refused, and nothing is installed', async () => {
    expect(await withScripts(['--foreground-scripts'])).toMatchObject({ ok: false });
    expect([npmCalls, readdirSync(packagesFolder())]).toEqual([['install --package-lock-only'], []]);
  });

  test.each([
    ['other scripts', (text: string) => text.replace('"names":["greeting@1.0.0"]', '"names":["@acme/server@1.0.0"]')],
    ['other archives', (text: string) => text.replaceAll('A'.repeat(86), 'B'.repeat(86))],
  ])('do not run at a repair if the person agreed to %s', async (_, change) => {
    await withScripts(['greeting@1.0.0']);
    const path = recordPath();
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, change(before));
    expect(readFileSync(path, 'utf8')).not.toBe(before);
    for (const name of folders()) rmSync(join(packagesFolder(), name), { recursive: true });
    npmCalls = [];
    expect(await install(open(npm))).toMatchObject({ ok: true, value: { ranScripts: [] } });
    expect(npmCalls).toEqual(['ci']);
  });
});

describe('a newer release', () => {
  const LATEST = { kind: 'npm' as const, name: '@acme/server', version: null, isExact: false };
  const NEWEST = lockOf().replace('"version":"1.0.0"', '"version":"1.1.0"');
  const newest: Npm = (args, folder, signal) => {
    if (args[0] !== 'install') return fakeNpm(args, folder, signal);
    writeFileSync(join(folder, 'package-lock.json'), NEWEST);
    return Promise.resolve(ok(undefined));
  };
  const failing: Npm = (args, folder, signal) =>
    args[0] === 'ci' ? Promise.resolve(err('no space')) : newest(args, folder, signal);
  const replace = async (npm: Npm) => {
    const plan = await open(npm).planNewest(LATEST, never);
    if (!plan.ok) throw new Error(plan.error);
    return open(npm).install(LATEST, { signal: never, tell: () => {}, plan: plan.value, replaces: true });
  };

  test('is looked up whatever is installed, and takes its place whole', async () => {
    await install(open(), LATEST);
    expect(open().find(LATEST)).toMatchObject({ release: '1.0.0' });
    expect(await open(newest).planNewest(LATEST, never)).toMatchObject({ ok: true, value: { release: '1.1.0' } });
    expect(open().find(LATEST)).toMatchObject({ release: '1.0.0' });
    expect(await replace(newest)).toMatchObject({ ok: true, value: { release: '1.1.0' } });
    expect(open().find(LATEST)).toMatchObject({ release: '1.1.0' });
  });

  test('leaves the earlier one in use if it cannot be installed', async () => {
    await install(open(), LATEST);
    expect(await replace(failing)).toMatchObject({ ok: false });
    expect(open().find(LATEST)).toMatchObject({ release: '1.0.0' });
    expect(folders()).toHaveLength(1);
  });

  test('is used from now on once it has started', async () => {
    await install(open(), LATEST);
    await replace(newest);
    await open().sweep();
    expect(folders()).toHaveLength(2);
    const found = open().find(LATEST);
    expect(found).toMatchObject({ release: '1.1.0', previousRelease: '1.0.0' });
    await open().keepStarted(LATEST, join(packagesFolder(), 'another'));
    expect(open().find(LATEST)).toMatchObject({ previousRelease: '1.0.0' });
    await open().keepStarted(LATEST, found?.folder ?? '');
    expect(open().find(LATEST)).toMatchObject({ release: '1.1.0', previousRelease: null });
    expect(await open().goBack(LATEST, found?.folder ?? '', 'it ended')).toBeNull();
  });

  test('gives way to the earlier one if it does not start, until it is installed again', async () => {
    await install(open(), LATEST);
    await replace(newest);
    const { folder } = open().find(LATEST) ?? { folder: '' };
    expect(await open().goBack(LATEST, join(packagesFolder(), 'another'), 'it ended')).toBeNull();
    const failed = { release: '1.1.0', used: '1.0.0', why: 'it ended' };
    expect(await open().goBack(LATEST, folder, 'it ended')).toEqual(failed);
    expect(open().find(LATEST)).toMatchObject({ release: '1.0.0', previousRelease: null });
    expect(open().findFailed(LATEST)).toEqual(failed);
    await replace(newest);
    expect(open().findFailed(LATEST)).toBeNull();
    expect(open().find(LATEST)).toMatchObject({ release: '1.1.0', previousRelease: '1.0.0' });
  });

  test('does not give way to a damaged one, and keeps the one before through a repair', async () => {
    const first = await install(open(), LATEST);
    if (!first.ok) throw new Error(first.error);
    await replace(newest);
    const { folder } = open().find(LATEST) ?? { folder: '' };
    rmSync(join(folder, 'node_modules'), { recursive: true });
    expect(await install(open(), LATEST)).toMatchObject({ ok: true, value: { previousRelease: '1.0.0' } });
    rmSync(join(first.value.folder, 'node_modules'), { recursive: true });
    const repaired = open().find(LATEST)?.folder ?? '';
    expect(await open().goBack(LATEST, repaired, 'it ended')).toBeNull();
  });

  test('is not removed by the repair of the earlier one', async () => {
    await install(open(), LATEST);
    await replace(newest);
    const { folder } = open().find(LATEST) ?? { folder: '' };
    rmSync(join(folder, 'node_modules'), { recursive: true });
    expect(open().find(LATEST)).toBeNull();
    expect(await install(open(), LATEST)).toMatchObject({ ok: true, value: { release: '1.1.0' } });
  });
});

describe('a sweep', () => {
  test('removes what an ended program left behind, and nothing else', async () => {
    const { folder } = await installed();
    const ended = spawnSync(process.execPath, ['-e', 'console.log(process.pid)'], { encoding: 'utf8' }).stdout.trim();
    for (const name of [`${ended}.1.aa`, 'junk', `${process.pid}.0.bb`]) mkdirSync(join(packagesFolder(), name));
    await open().sweep();
    expect(folders().map((name) => join(packagesFolder(), name))).toEqual([folder]);
  });

  test('of the packages of removed servers keeps those of others', async () => {
    const ended = spawnSync(process.execPath, ['-e', '']).pid;
    const { folder } = await installed(open(fakeNpm, ended));
    const other = { ...SPEC, version: '1.0', isExact: false };
    await install(open(fakeNpm, ended), other);
    expect(folders()).toHaveLength(2);
    await open().keepOnly([SPEC]);
    expect(folders().map((name) => join(packagesFolder(), name))).toEqual([folder]);
    expect([open().find(SPEC) !== null, open().find(other)]).toEqual([true, null]);
    await open().keepOnly([]);
    expect(readdirSync(packagesFolder())).toEqual([]);
  });

  test('leaves what an install has finished meanwhile, although its program has ended', async () => {
    const ended = spawnSync(process.execPath, ['-e', '']).pid;
    await installed(open(fakeNpm, ended));
    const [record = ''] = readdirSync(packagesFolder()).filter((name) => name.endsWith('.json'));
    const text = readFileSync(join(packagesFolder(), record), 'utf8');
    rmSync(join(packagesFolder(), record));
    mkdirSync(join(packagesFolder(), '0junk'));
    const sweeping = open().sweep();
    // The folder that sorts first is removed first, and only then is the other one looked at.
    writeFileSync(join(packagesFolder(), record), text, { mode: 0o600 });
    await sweeping;
    expect(folders()).toHaveLength(1);
    expect(open().find(SPEC)).not.toBeNull();
  });

  test('leaves an install in progress alone', async () => {
    const npm: Npm = async (args, folder, signal) => {
      await open().sweep();
      return fakeNpm(args, folder, signal);
    };
    expect(await install(open(npm))).toMatchObject({ ok: true });
  });

  test('leaves a replaced package alone while a server runs, but not an unfinished install', async () => {
    const { folder } = await installed();
    const running = join(home, 'mcp', 'running');
    mkdirSync(running);
    const self = { pid: process.pid, started: null };
    const record = { server: self, gateway: self, run_id: 'abcdef012345.1', server_id: 'mcp_1' };
    writeFileSync(join(running, `${process.pid}.json`), JSON.stringify(record));
    for (const name of ['old', 'unfinished']) mkdirSync(join(packagesFolder(), name));
    writeFileSync(join(packagesFolder(), 'old', 'svc-files.json'), '[]');
    await open().sweep();
    expect(folders().filter((name) => !folder.endsWith(name))).toEqual(['old']);
    rmSync(running, { recursive: true });
    await open().sweep();
    expect(folders().map((name) => join(packagesFolder(), name))).toEqual([folder]);
  });
});
