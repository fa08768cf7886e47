import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ArchiveEntry, startTestRegistry, type TestRegistry, type TestRelease } from './npm_registry.ts';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { PackageStore } from '../../gateway/packages/package_store.ts';

// The installs of npm packages for MCP servers, with the real npm and a registry on this machine.

/** npm starts several times in a test, and the machine may be busy: only ends a test that hangs. */
const SPEC = { kind: 'npm' as const, name: '@acme/server', version: '1.0.0', isExact: true };
const never = new AbortController().signal;

let home: string;
let registry: TestRegistry;
let told: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-packages-'));
  registry = await startTestRegistry([serverRelease(), greeting('1.0.0')]);
  told = [];
});
afterEach(async () => {
  await registry.stop();
  rmSync(home, { recursive: true, force: true });
});

/** The package with a program that prints what its dependency says. */
function serverRelease(more: object = {}, entries: readonly ArchiveEntry[] = []): TestRelease {
  const program = '#!/usr/bin/env node\nconsole.log(require("greeting"), process.argv.slice(2).join());\n';
  return {
    manifest: { ...SPEC, bin: { server: 'cli.js' }, dependencies: { greeting: '^1.0.0' }, isExact: undefined, ...more },
    entries: [{ path: 'package/cli.js', content: program }, ...entries],
  };
}

function greeting(version: string, more: object = {}): TestRelease {
  const content = `module.exports = ${JSON.stringify(`hello ${version}`)};\n`;
  return { manifest: { name: 'greeting', version, ...more }, entries: [{ path: 'package/index.js', content }] };
}

function open(more: Readonly<Record<string, string>> = {}): PackageStore {
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    npm_config_registry: registry.url,
    npm_config_cache: join(home, 'cache'),
    npm_config_fetch_retries: '0',
    ...more,
  };
  return new PackageStore({ mcpHome: join(home, 'mcp'), env, pid: process.pid });
}

const install = (store: PackageStore, spec = SPEC) =>
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
  test('has the package and its dependencies, is found again, and needs no registry then', async () => {
    expect(open().find(SPEC)).toBeNull();
    const { program } = await installed();
    await registry.stop();
    expect(outputOf(program)).toBe('hello 1.0.0 a,b\n');
    expect(open().find(SPEC)).toMatchObject({
      release: '1.0.0',
      start: { command: [program] },
      packages: 2,
      withScripts: [],
    });
    expect(folders()).toHaveLength(1);
    expect(told).toEqual(['installing @acme/server@1.0.0: 2 packages']);
  });

  test('is planned first, and brings what was planned', async () => {
    const store = open();
    const plan = await store.plan(SPEC, never);
    if (!plan.ok) throw new Error(plan.error);
    expect(plan.value).toMatchObject({ release: '1.0.0', withScripts: [] });
    expect(registry.requests.filter((path) => path.endsWith('.tgz'))).toEqual([]);
    expect(store.find(SPEC)).toBeNull();
    registry.publish(greeting('1.1.0'));
    const done = await store.install(SPEC, { signal: never, tell: () => {}, plan: plan.value });
    expect(done.ok && outputOf(done.value.start.command[0] ?? '')).toBe('hello 1.0.0 a,b\n');
  });

  test('runs no install script, and names the packages that have one', async () => {
    const mark = join(home, 'ran');
    const scripts = { preinstall: `touch ${mark}`, install: `touch ${mark}`, postinstall: `touch ${mark}` };
    registry.publish(serverRelease({ scripts }));
    registry.publish(greeting('1.0.0', { scripts }));
    const done = await install(open());
    expect(done).toMatchObject({ ok: true, value: { withScripts: ['@acme/server@1.0.0', 'greeting@1.0.0'] } });
    expect(existsSync(mark)).toBe(false);
  });
});

/** Writes what it is given, and makes links as node-gyp does. */
const script = (name: string) =>
  `node -e "fs.writeFileSync('ran.json', JSON.stringify(process.env)); fs.symlinkSync('/bin/sh', 'sh')" ${name}`;

const ran = (folder: string) => ({
  server: existsSync(join(folder, 'node_modules', SPEC.name, 'ran.json')),
  greeting: existsSync(join(folder, 'node_modules', 'greeting', 'ran.json')),
});

const withScripts = () => {
  registry.publish(serverRelease({ scripts: { postinstall: script('server') } }));
  registry.publish(greeting('1.0.0', { scripts: { install: script('greeting') } }));
};

describe('install scripts that a person agreed to', () => {
  test('run, no other does, and they get no credential of a registry', async () => {
    withScripts();
    const token = plantSecret();
    const store = open({ NPM_TOKEN: token, NODE_AUTH_TOKEN: token, npm_config__auth: token });
    const done = await store.install(SPEC, { signal: never, tell: () => {}, scripts: ['greeting@1.0.0'] });
    if (!done.ok) throw new Error(done.error);
    expect(done.value).toMatchObject({ ranScripts: ['greeting@1.0.0'] });
    expect(ran(done.value.folder)).toEqual({ server: false, greeting: true });
    const seen = readFileSync(join(done.value.folder, 'node_modules/greeting/ran.json'), 'utf8');
    expect(foundIn(seen, token)).toEqual([]);
    expect(existsSync(join(done.value.folder, 'node_modules/greeting/sh'))).toBe(false);
    expect(outputOf(done.value.start.command[0] ?? '')).toBe('hello 1.0.0 a,b\n');
  });

  test.each(ONLY_FULL)('run again at a repair%s', async () => {
    withScripts();
    const store = open();
    const first = await store.install(SPEC, { signal: never, tell: () => {}, scripts: ['@acme/server@1.0.0'] });
    if (!first.ok) throw new Error(first.error);
    rmSync(first.value.folder, { recursive: true });
    const again = await install(store);
    if (!again.ok) throw new Error(again.error);
    expect(ran(again.value.folder)).toEqual({ server: true, greeting: false });
  });

  test.each(ONLY_FULL)('that fail install nothing%s', async () => {
    registry.publish(serverRelease({ scripts: { install: 'exit 3' } }));
    const done = await open().install(SPEC, { signal: never, tell: () => {}, scripts: ['@acme/server@1.0.0'] });
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining('could not be installed') });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });
});

describe('an install that fails leaves nothing behind', () => {
  const failures: readonly (readonly [string, () => void, string])[] = [
    [
      'an archive is not what the registry describes',
      () => registry.publish({ ...greeting('1.0.0'), dist: { integrity: `sha512-${'A'.repeat(86)}==` } }),
      'EINTEGRITY',
    ],
    [
      'a dependency is a directory of this machine',
      () => registry.publish(serverRelease({ dependencies: { greeting: `file:${home}` } })),
      '',
    ],
    [
      'its program is outside of the package',
      () => registry.publish(serverRelease({ bin: { server: '../../../../../../../bin/sh' } })),
      '',
    ],
    ['the registry is gone', () => void registry.stop(), 'ECONNREFUSED'],
    ['the release does not exist', () => registry.publish({ ...serverRelease({ version: '2.0.0' }) }), ''],
    [
      'a dependency is a repository',
      () => registry.publish(serverRelease({ dependencies: { greeting: 'git+https://127.0.0.1:1/a.git' } })),
      '',
    ],
    ['it has no program', () => registry.publish(serverRelease({ bin: undefined })), 'has no program'],
    ['its program is not in the archive', () => registry.publish(serverRelease({ bin: { server: 'gone.js' } })), ''],
  ];
  // The others are mistakes, or shown with a made-up npm beside the store.
  test.each(sampleOf(failures, 3))('%s', async (_, prepare, said) => {
    if (_ === 'the release does not exist') {
      await registry.stop();
      registry = await startTestRegistry([greeting('1.0.0')]);
    }
    prepare();
    const done = await install(open());
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining(said) });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });

  test('an archive writes no file outside of the folder, and brings no link', async () => {
    const escapes = ['../../../../../../escaped', 'package/../../../../../../escaped', `${home}/escaped`];
    const files = escapes.map((path) => ({ path, content: 'x' }));
    const links = [
      { path: 'package/link', linkTo: '/etc/passwd' },
      { path: 'package/folder', linkTo: home },
      { path: 'package/folder/escaped', content: 'x' },
    ];
    registry.publish(serverRelease({}, [...files, ...links]));
    const done = await install(open());
    expect(existsSync(join(home, 'escaped'))).toBe(false);
    expect(existsSync(join(home, 'mcp', 'escaped'))).toBe(false);
    if (!done.ok) return;
    const found = readdirSync(packagesFolder(), { recursive: true, withFileTypes: true });
    const linked = found.filter((entry) => entry.isSymbolicLink());
    expect(linked.map(({ parentPath }) => parentPath.endsWith('.bin'))).toEqual(linked.map(() => true));
  });

  test('npm starts no git for a dependency from a repository', async () => {
    const [bin, mark] = [join(home, 'bin'), join(home, 'ran')];
    mkdirSync(bin);
    writeFileSync(join(bin, 'git'), `#!/bin/sh\ntouch ${mark}\nexit 1\n`, { mode: 0o755 });
    registry.publish(serverRelease({ dependencies: { greeting: 'git+file:///nonexistent/repository' } }));
    expect(await install(open({ PATH: `${bin}:${process.env['PATH']}` }))).toMatchObject({ ok: false });
    expect(existsSync(mark)).toBe(false);
  });

  test('npm fetches nothing from a URL that a package names', async () => {
    const stranger = await startTestRegistry();
    registry.publish(serverRelease({ dependencies: { greeting: `${stranger.url}/greeting.tgz` } }));
    const plan = await open().plan(SPEC, never);
    await stranger.stop();
    expect(plan).toMatchObject({ ok: false, error: expect.stringContaining('could not be resolved') });
    expect(stranger.requests).toEqual([]);
  });

  test('it is stopped', async () => {
    const stop = new AbortController();
    registry.beforeAnswer = () => {
      stop.abort();
      return new Promise(() => {});
    };
    const done = await open().install(SPEC, { signal: stop.signal, tell: () => {} });
    expect(done).toMatchObject({ ok: false, error: expect.stringContaining('stopped') });
    expect(readdirSync(packagesFolder())).toEqual([]);
  });
});

describe('a damaged package', () => {
  test('is installed again as it was, also if its registry has another archive under the same version', async () => {
    const store = open();
    const { folder } = await installed(store);
    registry.publish({ ...greeting('1.0.0'), entries: [{ path: 'package/index.js', content: 'evil' }] });
    rmSync(folder, { recursive: true });
    rmSync(join(home, 'cache'), { recursive: true });
    expect(await install(store)).toMatchObject({ ok: false, error: expect.stringContaining('EINTEGRITY') });
    expect(store.find(SPEC)).toBeNull();
  });
});
