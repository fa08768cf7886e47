import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { checkContainerProcess, mountsFilesOf, namesContainer, openContainerNamespace } from './container_namespace.ts';
import { listenInNamespace } from './namespace_listener.ts';
import { namespaceRights } from '../../sandbox/engine/namespace_rights.ts';

const ID = 'a'.repeat(64);
const OTHER = 'b'.repeat(64);
const NO_PID = 2 ** 31 - 1;

describe('the cgroups of a process identify its container', () => {
  it.each([
    ['version 1', `9:name=systemd:/docker/${ID}\n8:pids:/docker/${ID}`],
    ['version 2 with systemd', `0::/system.slice/docker-${ID}.scope`],
    ['a process in a nested group', `0::/docker/${ID}/init.scope`],
    ['rootless', `0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-${ID}.scope`],
    ['podman', `0::/machine.slice/libpod-${ID}.scope`],
    ['seen from another cgroup namespace', `0::/../../docker-${ID}.scope`],
  ])('%s', (_what, text) => {
    expect(namesContainer(text, ID)).toBe(true);
    expect(namesContainer(text, OTHER)).toBe(false);
  });

  it.each([
    ['none at all', '0::/'],
    ['an id with a longer suffix', `0::/docker/${ID}0`],
    ['an id with a longer prefix', `0::/docker/x${ID}`],
    ['a controller with that name', `1:${ID}:/`],
    ['nothing readable', ''],
  ])('but not %s', (_what, text) => {
    expect(namesContainer(text, ID)).toBe(false);
  });
});

/** A line of `/proc/PID/mountinfo`. */
const mounted = (root: string): string => `159 93 254:0 ${root} /etc/resolv.conf rw,relatime - ext4 /dev/vda rw`;

describe('the mounts of a process identify its container', () => {
  it.each([
    ['Docker', mounted(`/var/lib/docker/containers/${ID}/resolv.conf`)],
    ['podman', `1 2 0:1 / / rw - tmpfs tmpfs rw\n${mounted(`/containers/overlay-containers/${ID}/userdata/hosts`)}\n`],
  ])('with %s', (_what, text) => {
    expect([mountsFilesOf(text, ID), mountsFilesOf(text, OTHER)]).toEqual([true, false]);
  });

  it.each([
    ['a longer name', mounted(`/containers/${ID}0/hosts`)],
    ['the name of a device', `1 2 0:1 / / rw - tmpfs /${ID}/ rw`],
    ['nothing readable', ''],
  ])('but not with %s', (_what, text) => {
    expect(mountsFilesOf(text, ID)).toBe(false);
  });
});

const status = (effective: string): string => `Name:\tnode\nCapEff:\t${effective}\n`;

describe('the right to enter network namespaces', () => {
  it.each([
    ['root', status('000001ffffffffff'), 0, 0, 'root'],
    ['root without the capability', status('00000000a80425fb'), 0, 0, 'none'],
    ['a user with their own engine', status('0000000000000000'), 1000, 1000, 'rootless'],
    ["a user of root's engine", status('0000000000000000'), 1000, 0, 'none'],
    ['a user without an engine', status('0000000000000000'), 1000, null, 'none'],
    ['a system without this information', '', null, null, 'none'],
  ] as const)('of %s', (_what, text, uid, socketOwner, rights) => {
    expect(namespaceRights({ status: text, uid, socketOwner })).toBe(rights);
  });
});

describe('the process of a container', () => {
  let proc: string;

  beforeEach(() => {
    proc = mkdtempSync(join(tmpdir(), 'svc-proc-'));
    for (const pid of ['self', String(process.pid)]) {
      mkdirSync(join(proc, pid, 'ns'), { recursive: true });
      for (const ns of ['net', 'user']) writeFileSync(join(proc, pid, 'ns', ns), '');
    }
  });

  afterEach(() => rmSync(proc, { recursive: true }));

  const processWith = (cgroup: string, pidOf: number | null = null, pid = process.pid) => {
    writeFileSync(join(proc, String(process.pid), 'cgroup'), cgroup);
    return { pid, containerId: ID, pidOf: () => Promise.resolve(ok(pidOf)), proc };
  };
  const mount = (containerId: string): void =>
    writeFileSync(join(proc, String(process.pid), 'mountinfo'), mounted(`/containers/${containerId}/hosts`));

  it('is identified by its cgroup, without asking the engine', async () => {
    const pidOf = vi.fn<ReturnType<typeof processWith>['pidOf']>();
    const checked = await checkContainerProcess({ ...processWith(`0::/docker/${ID}`), pidOf });
    expect(checked).toMatchObject({ ok: true, value: { pid: process.pid } });
    expect(pidOf).not.toHaveBeenCalled();
  });

  it('is identified by the engine and its mounts if the cgroup does not tell', async () => {
    mount(ID);
    expect(await checkContainerProcess(processWith('0::/', process.pid))).toMatchObject({ ok: true });
  });

  it('is not identified by the engine alone, whose process ids may be those of another machine', async () => {
    const refused = { ok: false, error: { reason: 'not_the_container' } };
    expect(await checkContainerProcess(processWith('0::/', process.pid))).toMatchObject(refused);
    mount(OTHER);
    expect(await checkContainerProcess(processWith('0::/', process.pid))).toMatchObject(refused);
    expect(await openContainerNamespace(processWith('0::/', process.pid))).toMatchObject(refused);
  });

  it('is not known if the engine does not answer', async () => {
    mount(ID);
    const error = { reason: 'engine_timeout', message: 'no answer in time', fixes: [] } as const;
    const wanted = { ...processWith('0::/'), pidOf: () => Promise.resolve(err(error)) };
    expect(await checkContainerProcess(wanted)).toMatchObject({ error: { reason: 'engine_unavailable' } });
  });

  it.each([
    ["another container's", `0::/docker/${OTHER}`, null],
    ['of no container', '0::/', null],
    ['not the one that the engine reports', '0::/', 1],
  ])('is refused if %s', async (_what, cgroup, pidOf) => {
    mount(ID);
    expect(await checkContainerProcess(processWith(cgroup, pidOf))).toMatchObject({
      ok: false,
      error: { reason: 'not_the_container' },
    });
  });

  it('is refused if it does not run', async () => {
    expect(await checkContainerProcess(processWith(`0::/docker/${ID}`, null, NO_PID))).toMatchObject({ ok: false });
  });

  it("is refused if it shares the sidecar's own network namespace", async () => {
    const opened = await openContainerNamespace(processWith(`0::/docker/${ID}`));
    expect(opened).toMatchObject({ ok: true, value: { process: { pid: process.pid } } });
    if (opened.ok) await opened.value.close();
    rmSync(join(proc, 'self'), { recursive: true });
    mkdirSync(join(proc, 'self', 'ns'), { recursive: true });
    const linked = spawnSync('ln', [join(proc, String(process.pid), 'ns', 'net'), join(proc, 'self', 'ns', 'net')]);
    expect(linked.status).toBe(0);
    expect(await openContainerNamespace(processWith(`0::/docker/${ID}`))).toMatchObject({
      ok: false,
      error: { reason: 'shared_network' },
    });
  });

  it('has another refusal if its namespace cannot be opened', async () => {
    rmSync(join(proc, String(process.pid), 'ns', 'user'));
    expect(await openContainerNamespace(processWith(`0::/docker/${ID}`))).toMatchObject({
      error: { reason: 'namespace_forbidden' },
    });
    expect(await openContainerNamespace(processWith('0::/'))).toMatchObject({ error: { reason: 'not_the_container' } });
  });
});

const mayUnshare = spawnSync('unshare', ['--net', 'true']).status === 0;

describe.skipIf(!mayUnshare)('a listener in a network namespace', () => {
  let inside: ChildProcess;
  let pid: number;
  let proc: string;

  beforeEach(async () => {
    proc = mkdtempSync(join(tmpdir(), 'svc-proc-'));
    inside = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await new Promise((resolve) => inside.stdout?.once('data', resolve));
    pid = inside.pid ?? 0;
  });

  afterEach(async () => {
    const gone = new Promise((resolve) => inside.once('exit', resolve));
    inside.kill('SIGKILL');
    await gone;
    rmSync(proc, { recursive: true });
  });

  const options = { enterUser: false };
  const listeningOn = (port: number): boolean =>
    readFileSync(`/proc/${pid}/net/tcp`, 'latin1').includes(
      `0100007F:${port.toString(16).toUpperCase()} 00000000:0000 0A`,
    );

  async function namespace() {
    mkdirSync(join(proc, String(pid)), { recursive: true });
    writeFileSync(join(proc, String(pid), 'cgroup'), `0::/docker/${ID}`);
    for (const name of ['self', String(pid)]) {
      mkdirSync(join(proc, name), { recursive: true });
      symlinkSync(`/proc/${name}/ns`, join(proc, name, 'ns'));
    }
    const opened = await openContainerNamespace({ pid, containerId: ID, pidOf: () => Promise.resolve(ok(pid)), proc });
    if (!opened.ok) throw new Error(opened.error.message);
    return opened.value;
  }

  it('is reachable there only, and is closed from outside', async () => {
    expect(statSync(`/proc/${pid}/ns/net`).ino).not.toBe(statSync('/proc/self/ns/net').ino);
    const at = await namespace();
    const [one, two] = [createServer(), createServer()];
    const wanted = [
      { server: one, port: 7421 },
      { server: two, port: 7422 },
    ];
    expect(await listenInNamespace(wanted, { ...options, namespace: at })).toEqual({ ok: true, value: undefined });
    expect([listeningOn(7421), listeningOn(7422)]).toEqual([true, true]);
    expect(one.address()).toMatchObject({ address: '127.0.0.1', port: 7421 });
    await Promise.all([one, two].map((server) => new Promise((resolve) => server.close(resolve))));
    expect([listeningOn(7421), listeningOn(7422)]).toEqual([false, false]);
    await at.close();
  });

  it('is refused if a port is taken, and leaves no port open', async () => {
    const at = await namespace();
    const first = createServer();
    await listenInNamespace([{ server: first, port: 7422 }], { ...options, namespace: at });
    const wanted = [
      { server: createServer(), port: 7421 },
      { server: createServer(), port: 7422 },
    ];
    expect(await listenInNamespace(wanted, { ...options, namespace: at })).toMatchObject({
      ok: false,
      error: { reason: 'listener_failed', message: expect.stringContaining('EADDRINUSE') },
    });
    expect([listeningOn(7421), listeningOn(7422)]).toEqual([false, true]);
    await new Promise((resolve) => first.close(resolve));
    await at.close();
  });
});
