import { describe, expect, it } from 'vitest';
import { findBubblewrap, type KernelFacts, type MachineFacts, whyNoSandbox } from './find_bubblewrap.ts';

const MACHINE: MachineFacts = {
  platform: 'linux',
  arch: 'x64',
  path: '/home/ada/bin:/usr/bin',
  workingDirectory: '/home/ada/shop',
  isProgram: (path) => path === '/usr/bin/bwrap',
  realPath: (path) => path,
};
const KERNEL: KernelFacts = {
  uid: 1000,
  apparmorRestricts: '0',
  unprivilegedClone: '1',
  mostUserNamespaces: '15000',
  release: '6.6.87.2-microsoft-standard-WSL2',
  said: '',
};

describe('bubblewrap', () => {
  it('is found in a folder of the system, or on PATH', () => {
    expect(findBubblewrap(MACHINE)).toEqual({ ok: true, value: { program: '/usr/bin/bwrap', machine: 'x64' } });
    expect(findBubblewrap({ ...MACHINE, isProgram: () => true })).toMatchObject({
      value: { program: '/usr/bin/bwrap' },
    });
    const own = { ...MACHINE, isProgram: (path: string) => path === '/home/ada/bin/bwrap' };
    expect(findBubblewrap(own)).toMatchObject({ ok: true, value: { program: '/home/ada/bin/bwrap' } });
    expect(findBubblewrap({ ...MACHINE, path: '', arch: 'arm64' })).toMatchObject({
      ok: true,
      value: { machine: 'arm64' },
    });
  });

  it.each([
    ['a folder of the project', '/home/ada/shop/node_modules/.bin', '/home/ada/shop/node_modules/.bin/bwrap'],
    ['a package of a folder above it', '/home/ada/node_modules/.bin', '/home/ada/node_modules/.bin/bwrap'],
    ['a link into the project', '/home/ada/tools', '/home/ada/shop/planted'],
  ])('is never one that the project could have planted: %s', (_what, folder, real) => {
    const planted = {
      ...MACHINE,
      path: folder,
      isProgram: (path: string) => path === `${folder}/bwrap`,
      realPath: (path: string) => (path === `${folder}/bwrap` ? real : path),
    };
    expect(findBubblewrap(planted)).toMatchObject({ ok: false });
  });

  it('is never one of a relative folder of PATH', () => {
    const facts = { ...MACHINE, path: '.:bin:', isProgram: (path: string) => !path.startsWith('/') };
    expect(findBubblewrap(facts)).toMatchObject({ ok: false });
  });

  it.each([
    ['macOS', { platform: 'darwin' }, 'needs Linux, and this is darwin', 'svc run --sandbox AGENT'],
    ['another system', { platform: 'freebsd' }, 'needs Linux, and this is freebsd', 'svc launch'],
    ['another machine', { arch: 'riscv64' }, 'this machine is riscv64', 'svc launch'],
    ['no bubblewrap', { isProgram: () => false }, 'bubblewrap is not installed', 'svc launch'],
  ])('is refused with the nearest way: %s', (_what, change, message, fix) => {
    const found = findBubblewrap({ ...MACHINE, ...change });
    expect(found.ok ? '' : found.error.message).toContain(message);
    expect(found.ok ? [] : found.error.fixes.at(-1)).toContain(fix);
  });
});

describe('why the kernel allows no sandbox', () => {
  it.each([
    ['AppArmor', { apparmorRestricts: '1' }, 'AppArmor', 'docs/guides/sandbox.md'],
    ['root alone may', { unprivilegedClone: '0' }, 'to root alone', 'unprivileged_userns_clone=1'],
    ['WSL 1', { release: '4.4.0-19041-Microsoft' }, 'WSL 1, which has no namespaces', '--set-version'],
    ['none at all', { mostUserNamespaces: '0' }, 'no user namespaces', 'max_user_namespaces'],
    ['a container', { said: "bwrap: Can't mount proc: Operation not permitted\n" }, ": Can't mount proc", 'seccomp'],
  ])('%s', (_what, change, message, fix) => {
    const problem = whyNoSandbox({ ...KERNEL, ...change });
    expect(problem.message).toContain(message);
    expect(problem.fixes.join('\n')).toContain(fix);
  });

  it('does not blame on root what holds for other users', () => {
    const root = { ...KERNEL, uid: 0, apparmorRestricts: '1', unprivilegedClone: '0', said: 'bwrap: something else' };
    expect(whyNoSandbox(root).message).toBe('bubblewrap cannot make a sandbox here: something else');
  });
});
