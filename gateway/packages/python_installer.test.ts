import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readPackageCommand } from '../../shared/mcp/package_command.ts';
import { err, ok } from '../../shared/model/result.ts';
import { PackageStore } from './package_store.ts';
import type { Pip } from './pip_program.ts';

const never = new AbortController().signal;
const PYTHON = { executable: process.execPath, version: '3.11', platform: 'linux-x86_64', prefix: '/usr/local' };

let home: string;
let calls: string[];
/** What the package has in `entry_points.txt`. */
let entryPoints: string;
let release: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-python-'));
  calls = [];
  entryPoints = '[console_scripts]\nacme-server = acme.server:main\n';
  release = '1.0.0';
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function reportOf(): string {
  const install = ['acme-server', 'Greeting'].map((name) => ({
    download_info: {
      url: `https://files.example/${name}-${release}-py3-none-any.whl`,
      archive_info: { hashes: { sha256: 'a'.repeat(64) } },
    },
    is_direct: false,
    metadata: { name, version: release },
  }));
  return JSON.stringify({ version: '1', install });
}

/** Writes what pip would. */
const fakePip = (python = PYTHON): Pip => ({
  describe: () => Promise.resolve(ok(python)),
  run(args, folder) {
    calls.push(args.includes('--dry-run') ? 'resolve' : 'install');
    if (args.includes('--dry-run')) writeFileSync(join(folder, 'svc-report.json'), reportOf());
    else writeLibrary(folder);
    return Promise.resolve(ok(undefined));
  },
});

function writeLibrary(folder: string): void {
  const info = join(folder, 'lib', `acme_server-${release}.dist-info`);
  mkdirSync(info, { recursive: true });
  writeFileSync(join(info, 'entry_points.txt'), entryPoints);
}

function specOf(...words: string[]) {
  const read = readPackageCommand(words);
  if (read === null) throw new Error('not a command of a package');
  return read.spec;
}

const SPEC = specOf('uvx', 'acme-server@1.0.0');
const open = (pip = fakePip()) => new PackageStore({ mcpHome: join(home, 'mcp'), env: {}, pid: process.pid, pip });
const install = (store = open(), spec = SPEC) => store.install(spec, { signal: never, tell: () => undefined });

describe('an installed Python package', () => {
  test('is started by its Python, and in a container by that of the image', async () => {
    const done = await install();
    const folder = done.ok ? done.value.folder : '';
    expect(done).toMatchObject({
      value: {
        release: '1.0.0',
        packages: 2,
        start: {
          command: [PYTHON.executable, join(folder, 'svc_start.py')],
          inContainer: ['python3', join(folder, 'svc_start.py')],
          image: 'python:3.11-slim',
          needs: [PYTHON.executable, '/usr/local/lib'],
        },
      },
    });
    const lines = readFileSync(join(folder, 'svc_start.py'), 'utf8');
    expect(lines).toContain('importlib.import_module("acme.server")');
    expect(readFileSync(join(folder, 'svc-requirements.txt'), 'utf8')).toBe(
      ['acme-server', 'greeting'].map((name) => `${name}==1.0.0 --hash=sha256:${'a'.repeat(64)}\n`).join(''),
    );
  });

  test('has its program read in little time, also beside a line of spaces', async () => {
    const spaces = ' '.repeat(100_000);
    entryPoints += `x${spaces}y\nx = y${spaces}z\n`;
    expect(await install()).toMatchObject({ ok: true });
  });

  test('is shared by commands of other runners, and another program of it is another install', async () => {
    entryPoints += 'other = acme.other:main\n';
    const store = open();
    await install(store);
    expect(store.find(specOf('pipx', 'run', 'acme-server==1.0.0'))).not.toBeNull();
    expect(store.find(specOf('uvx', '--from', 'acme-server==1.0.0', 'other'))).toBeNull();
    expect(await install(store, specOf('uvx', '--from', 'acme-server==1.0.0', 'other'))).toMatchObject({ ok: true });
    expect(calls).toEqual(['resolve', 'install', 'resolve', 'install']);
  });

  test('goes back to the release before if the newest one does not start', async () => {
    const latest = specOf('uvx', 'acme-server');
    const store = open();
    await install(store, latest);
    release = '2.0.0';
    const plan = await store.planNewest(latest, never);
    if (!plan.ok) throw new Error(plan.error);
    const done = await store.install(latest, { signal: never, tell: () => {}, plan: plan.value, replaces: true });
    expect(done).toMatchObject({ ok: true, value: { release: '2.0.0', previousRelease: '1.0.0' } });
    expect(done.ok && (await store.goBack(latest, done.value.folder, 'it ended'))).toMatchObject({ used: '1.0.0' });
    expect(store.find(latest)).toMatchObject({ release: '1.0.0' });
  });
});

async function damaged(): Promise<void> {
  const done = await install();
  if (done.ok) rmSync(done.value.folder, { recursive: true });
  calls = [];
}

describe('a damaged Python package', () => {
  test('is installed again by its lock, without a look at the index', async () => {
    await damaged();
    release = '1.0.1';
    expect(await install()).toMatchObject({ ok: true, value: { release: '1.0.0' } });
    expect(calls).toEqual(['install']);
  });

  test('is not installed for another Python by itself, but by a consent to what it brings now', async () => {
    await damaged();
    const store = open(fakePip({ ...PYTHON, version: '3.13' }));
    const refused = await install(store);
    expect(refused).toMatchObject({ ok: false, error: expect.stringContaining('svc mcp consent SERVER') });
    expect(calls).toEqual([]);
    const plan = await store.plan(SPEC, never);
    if (!plan.ok) throw new Error(plan.error);
    const done = await store.install(SPEC, { signal: never, tell: () => {}, plan: plan.value });
    expect(done).toMatchObject({ ok: true, value: { start: { image: 'python:3.13-slim' } } });
  });

  test('whose Python is gone is not found', async () => {
    await install(open(fakePip({ ...PYTHON, executable: '/nonexistent/python3.11' })));
    expect(open().find(SPEC)).toBeNull();
  });
});

describe('a package is refused', () => {
  test.each<readonly [string, string, RegExp]>([
    ['without a program', '', /has no program/],
    [
      'with more of a list than programs have',
      `[console_scripts]\nacme-server = a:b\n${'#'.repeat(300_000)}`,
      /has no program/,
    ],
    ['whose programs are of another kind', '[gui_scripts]\nacme-server = a:b\n', /has no program/],
    [
      'with several programs, none of its name',
      '[console_scripts]\na = a:b\nb = a:b\n',
      /several programs.*: a, b\. Name one: uvx --from acme-server PROGRAM/,
    ],
    ...['os:system("x")', 'a:b\\nimport os', 'a b:c', 'a:b; x', '"a":b'].map((entry): [string, string, RegExp] => [
      `that starts by ${entry}`,
      `[console_scripts]\nacme-server = ${entry}\n`,
      /cannot be read/,
    ]),
  ])('%s', async (_, text, said) => {
    entryPoints = text;
    const done = await install();
    expect(done.ok ? '' : done.error).toMatch(said);
  });

  test('if there is no Python', async () => {
    const done = await install(open({ ...fakePip(), describe: () => Promise.resolve(err('there is no python3')) }));
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining('there is no python3') });
  });
});
