import { describe, expect, test } from 'vitest';
import { MountTable } from './mount_table.ts';
import { checkMount, checkMounts, parseMount, type MountPolicy } from './mount_policy.ts';

/** A file system in which only these links exist; `/missing` is not there. */
const LINKS: Readonly<Record<string, string>> = {
  '/home/u/link': '/home/u/.svc/sessions',
  '/var/run/docker.sock': '/run/docker.sock',
  '/var/run': '/run',
  '/home/u/root': '/',
};
const policy: MountPolicy = {
  workingDirectory: '/home/u/project',
  guarded: [
    { path: '/home/u/.svc', name: 'the state directory of svc' },
    { path: '/var/run/docker.sock', name: 'a container engine' },
  ],
  realPath: (path) => (path.startsWith('/missing') ? null : (LINKS[path] ?? path)),
};
const mount = (source: string, target = '/data') => checkMount({ source, target, readOnly: false }, policy);

describe('a mount argument', () => {
  test('has a source and a target, and may be read-only', () => {
    expect(parseMount('src:/data')).toEqual({ ok: true, value: { source: 'src', target: '/data', readOnly: false } });
    expect(parseMount('/a:/b/:ro')).toEqual({ ok: true, value: { source: '/a', target: '/b', readOnly: true } });
    expect(parseMount('/a:/b/../c')).toMatchObject({ ok: true, value: { target: '/c' } });
  });

  test.each(['', '/a', ':/b', '/a:', '/a:b', '/a:/b:ro:x', '/a:/b:rx', '/a:/b\n'])('%j is refused', (text) => {
    expect(parseMount(text).ok).toBe(false);
  });
});

describe('the source of a mount', () => {
  test('is resolved: a relative path from the working directory, a link to its target', () => {
    expect(mount('src')).toMatchObject({ ok: true, value: { source: '/home/u/project/src' } });
    expect(mount('/var/run/x')).toMatchObject({ ok: true });
  });

  test.each([
    ['the state directory', '/home/u/.svc'],
    ['a file in the state directory', '/home/u/.svc/sidecar/host.token'],
    ['a directory that contains the state directory', '/home/u'],
    ['a link into the state directory', '/home/u/link'],
    ['a relative path to the state directory', '../.svc'],
    ['the engine’s socket', '/run/docker.sock'],
    ['the engine’s socket through a link', '/var/run/docker.sock'],
    ['the directory of the engine’s socket', '/run'],
    ['the directory of the engine’s socket through a link', '/var/run'],
    ['everything', '/'],
    ['a link to everything', '/home/u/root'],
    ['a process', '/proc/1/root'],
    ['the devices', '/dev'],
    ['the kernel', '/sys/fs/cgroup'],
    ['what is not there', '/missing/x'],
  ])('may not be %s', (_what, source) => {
    expect(mount(source)).toMatchObject({ ok: false, error: expect.stringMatching(/^the source "/) });
  });

  test('may have a name that starts with a guarded name', () => {
    expect(mount('/home/u/.svc-notes').ok).toBe(true);
    expect(mount('/run/docker.socket').ok).toBe(true);
    expect(mount('/processes').ok).toBe(true);
  });

  test('refused because of a link: the message names the link and its target', () => {
    const refused = mount('/home/u/link');
    expect(!refused.ok && refused.error).toContain('"/home/u/.svc/sessions" (through "/home/u/link")');
  });
});

describe('a source that is a bind mount', () => {
  const mountTable = new MountTable(
    [
      '1 0 8:1 / / rw - ext4 a rw',
      '2 1 8:1 /home/u/.svc /srv/bound rw - ext4 a rw',
      '3 1 8:1 /home/u/.svc/sidecar /srv/below/keys rw - ext4 a rw',
      '4 1 8:1 /home /srv/homes rw - ext4 a rw',
      '5 1 8:1 /home/u/project /srv/project rw - ext4 a rw',
      '6 1 8:2 /home/u/.svc /srv/elsewhere rw - ext4 b rw',
    ].join('\n'),
  );
  const checkBoundMount = (source: string) =>
    checkMount({ source, target: '/data', readOnly: false }, { ...policy, mountTable });

  test.each([
    ['of the state directory', '/srv/bound'],
    ['of a directory that contains it', '/srv/homes/u'],
    ['that lies below, of what it holds', '/srv/below'],
    ['through which it is reached', '/srv/homes/u/.svc/sidecar'],
    ['among others', '/srv'],
  ])('%s is refused', (_what, source) => {
    expect(checkBoundMount(source)).toMatchObject({
      ok: false,
      error: expect.stringContaining('a bind mount of the state directory'),
    });
  });

  test.each(['/srv/project', '/srv/homes/u/project', '/srv/elsewhere', '/home/u/project'])(
    '%s is not refused',
    (source) => {
      expect(checkBoundMount(source).ok).toBe(true);
    },
  );
});

describe('the target of a mount', () => {
  test.each([
    '/',
    '/etc',
    '/etc/svc',
    '/etc/svc/proxy/ca.pem',
    '/run',
    '/run/svc',
    '/proc',
    '/proc/1',
    '/sys',
    '/dev/shm',
    '/usr',
    '/usr/local',
    '/usr/local/bin',
    '/usr/local/share/svc/guard.sh',
    '/bin',
    '/lib',
  ])('may not be %s', (target) => {
    expect(mount('/srv', target)).toMatchObject({ ok: false, error: expect.stringContaining(JSON.stringify(target)) });
  });

  test.each(['/data', '/home/agent/workspace', '/etc/myapp', '/srv', '/usr/share/x', '/opt'])('may be %s', (target) => {
    expect(mount('/srv', target).ok).toBe(true);
  });

  test('may be used by one mount only', () => {
    const two = ['/a', '/b'].map((source) => ({ source, target: '/data', readOnly: false }));
    expect(checkMounts(two, policy)).toMatchObject({ ok: false, error: expect.stringContaining('two mounts') });
  });
});
