import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { emptyFoldersOf, sandboxCommand } from './trial_place.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(import.meta.dirname, 'trial-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const packageFolder = '/state/mcp/packages/one';
const run = { packageFolder, needs: ['/usr/bin/python3'], node: '/opt/node/bin/node', filter: '/state/filter' };
const argsFor = (...words: string[]) =>
  sandboxCommand({ program: '/usr/bin/bwrap' }, { ...run, command: [`${packageFolder}/cli.js`, ...words] }).args;

describe('the sandbox of a trial', () => {
  test('has no network, no rights, and of the machine only the system and the package, read-only', () => {
    const args = argsFor('--stdio');
    expect(args.slice(0, 4)).toEqual(['-c', 'exec "$@" 3<"$0"', '/state/filter', '/usr/bin/bwrap']);
    expect(args).toEqual(expect.arrayContaining(['--unshare-net', '--unshare-pid', '--unshare-user', '--seccomp']));
    expect(args.filter((word) => /^--(?:dev-)?bind/.test(word))).toEqual([]);
    const bound = args.flatMap((word, at) => (word === '--ro-bind-try' ? [args[at + 1] ?? ''] : []));
    const system = /^\/(?:usr|s?bin|lib(?:32|64|x32)?|nix\/store|gnu\/store)$|^\/etc\/[a-z]/;
    expect(bound.filter((path) => !system.test(path))).toEqual([packageFolder, '/opt/node/bin/node']);
    expect(bound.filter((path) => path.startsWith(homedir()) && homedir() !== '/')).toEqual([]);
    expect(args.slice(args.indexOf('--') + 1)).toEqual(['/opt/svc/package/cli.js', '--stdio']);
  });

  test('has an empty folder in the place of one that the command names', () => {
    const args = argsFor(folder);
    expect(args[args.indexOf('--dir') + 1]).toBe(folder);
    expect(args).not.toContain(`--ro-bind ${folder}`);
  });
});

describe('the empty folders of a trial', () => {
  test('are the folders that are named, and no part of the system, no file and no option', () => {
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'a:b'));
    const others = [
      '/',
      '/usr',
      '/usr/lib',
      '/etc',
      '/proc/self',
      '/tmp',
      '/home',
      join(folder, 'file'),
      'src',
      folder + '/../x',
      join(folder, 'a:b'),
      join(folder, 'none'),
    ];
    expect(emptyFoldersOf(['/bin/program', folder, ...others])).toEqual([folder]);
    expect(emptyFoldersOf([folder])).toEqual([]);
  });
});
