import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
// @ts-expect-error plain JavaScript without declarations: it runs before anything is installed
import { npmEnvironment, parseArguments, staleness } from './install.mjs';

const locked = {
  '': { name: 'svc' },
  'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
  'node_modules/d': { version: '2.0.0', integrity: 'sha512-d', dev: true },
  'node_modules/o': { version: '3.0.0', optional: true },
};
const full = { 'node_modules/a': locked['node_modules/a'], 'node_modules/d': locked['node_modules/d'] };
const production = { 'node_modules/a': locked['node_modules/a'] };
const there = (): boolean => true;

describe('staleness', () => {
  test('a full install satisfies both modes, without the optional packages of other platforms', () => {
    expect(staleness(locked, full, 'full', there)).toBeNull();
    expect(staleness(locked, full, 'production', there)).toBeNull();
  });

  test('a production install does not satisfy a full one', () => {
    expect(staleness(locked, production, 'production', there)).toBeNull();
    expect(staleness(locked, production, 'full', there)).toBe('installed without the development tools');
  });

  test.each([
    ['no record of a complete install', null, there, 'missing'],
    ['another version', { 'node_modules/a': { version: '1.0.1', integrity: 'sha512-a' } }, there, 'stale'],
    ['different content', { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-b' } }, there, 'stale'],
    ['a package that is missing', {}, there, 'stale'],
    ['a package whose folder was removed', full, (): boolean => false, 'stale'],
  ])('%s needs an install', (_name, installed, isThere, reason) => {
    expect(staleness(locked, installed, 'production', isThere)).toBe(reason);
  });
});

test('an unknown argument is refused by name', () => {
  expect(parseArguments(['--omit=dev'])).toEqual({ mode: 'production' });
  expect(parseArguments([])).toEqual({ mode: 'full' });
  expect(parseArguments(['--omit=optional']).error).toContain('"--omit=optional"');
});

test('variables of an outer npm run do not reach the install, but registry settings do', () => {
  const env = {
    npm_config_omit: 'dev',
    NODE_ENV: 'production',
    npm_config_registry: 'https://r.example',
    PATH: '/bin',
  };
  expect(npmEnvironment(env)).toEqual({ npm_config_registry: 'https://r.example', PATH: '/bin' });
});

describe('the program', () => {
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'svc-install-'));
    mkdirSync(join(root, 'tools'));
    mkdirSync(join(root, 'path'));
    copyFileSync(fileURLToPath(new URL('install.mjs', import.meta.url)), join(root, 'tools', 'install.mjs'));
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: locked }));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const fakeNpm = (script: string): void =>
    writeFileSync(join(root, 'path', 'npm'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const record = `mkdir -p node_modules/a; echo {} >node_modules/a/package.json
    printf '%s' '${JSON.stringify({ packages: production })}' >node_modules/.package-lock.json`;
  const install = (): { status: number | null; stderr: string; stdout: string } =>
    spawnSync(process.execPath, [join(root, 'tools', 'install.mjs'), '--omit=dev'], {
      encoding: 'utf8',
      env: { PATH: `${join(root, 'path')}:/bin:/usr/bin` },
    });

  test('installs once with npm ci, and then has nothing to do', () => {
    fakeNpm(`echo "npm $*"; ${record}`);
    const first = install();
    expect(first.stderr).toContain('npm ci --no-audit --no-fund --loglevel=error --omit=dev');
    expect(first.status).toBe(0);
    expect(first.stdout).toBe('');
    expect(install()).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(root)).not.toContain('.svc-install.lock');
  });

  test('a failed npm ci is a clear error and is tried again the next time', () => {
    fakeNpm('echo "network down" >&2; exit 7');
    const first = install();
    expect(first.status).toBe(1);
    expect(first.stderr).toContain('npm ci ended with exit status 7');
    fakeNpm(record);
    expect(install().status).toBe(0);
  });

  test('a lock left by a dead process does not block', () => {
    const gone = spawnSync(process.execPath, ['-e', '']).pid;
    writeFileSync(join(root, '.svc-install.lock'), `${gone}\n`);
    fakeNpm(record);
    expect(install().status).toBe(0);
  });

  test('a damaged lock file is refused', () => {
    writeFileSync(join(root, 'package-lock.json'), '{');
    expect(install()).toMatchObject({ status: 1, stderr: expect.stringContaining('package-lock.json') });
  });
});
