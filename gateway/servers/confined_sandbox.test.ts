import { homedir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { sandboxCommand } from './confined_sandbox.ts';

const packageFolder = '/state/mcp/packages/one';
const program = {
  command: [`${packageFolder}/cli.js`, '--stdio'],
  packageFolder,
  needs: ['/usr/bin/python3'],
  node: '/opt/node/bin/node',
  filter: '/state/filter',
};
const argsOf = (more: Partial<Parameters<typeof sandboxCommand>[1]> = {}): readonly string[] =>
  sandboxCommand({ program: '/usr/bin/bwrap' }, { ...program, ...more }).args;
const boundIn = (args: readonly string[]): readonly string[] =>
  args.flatMap((word, at) => (/^--ro-bind(-try)?$/.test(word) ? [args[at + 1] ?? ''] : []));

describe('a confined program', () => {
  test('has no network, no rights, and of the machine only the system and the package, read-only', () => {
    const args = argsOf();
    expect(args.slice(0, 4)).toEqual(['-c', 'exec "$@" 3<"$0"', '/state/filter', '/usr/bin/bwrap']);
    expect(args).toEqual(expect.arrayContaining(['--unshare-net', '--unshare-pid', '--unshare-user', '--seccomp']));
    expect(args.filter((word) => /^--(?:dev-)?bind/.test(word))).toEqual([]);
    const system = /^\/(?:usr|s?bin|lib(?:32|64|x32)?|nix\/store|gnu\/store)$|^\/etc\/[a-z]/;
    const others = boundIn(args).filter((path) => !system.test(path) && !path.startsWith('/proc/'));
    expect(others).toEqual([packageFolder, '/opt/node/bin/node']);
    expect(boundIn(args).filter((path) => path.startsWith(homedir()) && homedir() !== '/')).toEqual([]);
    expect(args.slice(args.indexOf('--') + 1)).toEqual(['/opt/svc/package/cli.js', '--stdio']);
  });

  test('can write only the empty folders that it is given, its home and /tmp, each up to a size', () => {
    const text = argsOf({ emptyFolders: ['/data'] }).join(' ');
    for (const path of ['/data', '/home/mcp', '/tmp']) expect(text).toContain(` --tmpfs ${path} `);
    expect(text).toContain(' --remount-ro / ');
    const { args } = sandboxCommand({ program: '/usr/bin/bwrap', limitsSizes: true }, program);
    expect(args.join(' ')).toContain(' --size 1073741824 --tmpfs /home/mcp ');
  });

  test('cannot write the settings of the kernel, also if root has made the sandbox', () => {
    expect(boundIn(argsOf())).toEqual(expect.arrayContaining(['/proc/sys', '/proc/sysrq-trigger']));
    expect(argsOf().indexOf('/proc/sys')).toBeGreaterThan(argsOf().indexOf('--proc'));
  });

  test('has what its package needs of /opt, and nothing else of it', () => {
    const bound = boundIn(argsOf({ needs: ['/opt/python3.12'] }));
    expect(bound.filter((path) => path.startsWith('/opt/'))).toEqual(['/opt/python3.12', '/opt/node/bin/node']);
  });

  test('is started by what carries to the proxy, and signals reach both without ending the sandbox', () => {
    const args = argsOf({ starter: ['/node', '/init.cjs'], files: [{ source: '/a', target: '/run/svc/session' }] });
    expect(args[1]).toBe('trap "" INT HUP TERM; exec "$@" 3<"$0"');
    expect(args.slice(args.indexOf('--') + 1)).toEqual(['/node', '/init.cjs', '/opt/svc/package/cli.js', '--stdio']);
    expect(args.join(' ')).toContain(' --ro-bind /a /run/svc/session ');
  });

  test('needs no package', () => {
    expect(argsOf({ packageFolder: null }).join(' ')).not.toContain('/opt/svc/package ');
  });
});
