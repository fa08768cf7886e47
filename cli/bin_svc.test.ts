import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const BIN = fileURLToPath(new URL('../bin/svc', import.meta.url));

/** A checkout whose programs print how they were started. */
let root = '';
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc bin ')));
  for (const folder of ['bin', 'path', 'links', join('node_modules', '.bin'), join('node_modules', 'commander')]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  copyFileSync(BIN, join(root, 'bin', 'svc'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function fakeNode(path: string, version: string): void {
  const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "${version}"; printf '%s\\n' "$@"; fi\n`;
  writeFileSync(join(root, path), script, { mode: 0o755 });
}
const locked = join('node_modules', '.bin', 'node');
const onPath = join('path', 'node');
const svc = (...args: string[]): string[] =>
  run(join(root, 'bin', 'svc'), args)
    .stdout.trimEnd()
    .split('\n');
const run = (file: string, args: string[]) =>
  spawnSync(file, args, { encoding: 'utf8', cwd: '/', env: { PATH: `${join(root, 'path')}:/bin:/usr/bin` } });

describe('bin/svc', () => {
  test('prefers the locked Node and passes the arguments on unchanged', () => {
    fakeNode(locked, 'v24.1.0');
    fakeNode(onPath, 'v26.0.0');
    const args = ['run', '--', 'a b', '', '$HOME'];
    expect(svc(...args)).toEqual(['v24.1.0', '--min-semi-space-size=4', join(root, 'cli', 'main.ts'), ...args]);
  });

  test.each(['v22.18.0', 'v23.10.0', 'v24.0.0', 'v100.2.3'])('starts %s on PATH without flags', (version) => {
    fakeNode(onPath, version);
    expect(svc()).toEqual([version, join(root, 'cli', 'main.ts')]);
  });

  test.each(['v22.15.0', 'v22.17.1'])('starts %s with the flag to strip types', (version) => {
    fakeNode(onPath, version);
    expect(svc()).toContain('--experimental-strip-types');
  });

  test.each(['v22.14.0', 'v23.9.0', 'v20.20.2', 'v9.9.9', 'garbage', ''])('refuses %j with the fix', (version) => {
    fakeNode(onPath, version);
    const { status, stderr, stdout } = run(join(root, 'bin', 'svc'), []);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('no Node 22.15 or newer');
    expect(stderr).toContain('tools/install.mjs');
  });

  test('skips a locked Node that does not start on this machine', () => {
    writeFileSync(join(root, locked), '#!/nonexistent/loader\n', { mode: 0o755 });
    fakeNode(onPath, 'v24.0.0');
    expect(svc()[0]).toBe('v24.0.0');
  });

  test('finds its checkout through links, relative and absolute', () => {
    fakeNode(locked, 'v24.1.0');
    symlinkSync(join('..', 'bin', 'svc'), join(root, 'links', 'one'));
    symlinkSync(join(root, 'links', 'one'), join(root, 'path', 'svc'));
    expect(run('svc', []).stdout).toContain(join(root, 'cli', 'main.ts'));
  });

  test('says what to do if nothing is installed', () => {
    rmSync(join(root, 'node_modules'), { recursive: true });
    const { status, stderr } = run(join(root, 'bin', 'svc'), []);
    expect(status).toBe(1);
    expect(stderr).toContain('npm start');
  });
});
