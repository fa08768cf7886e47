import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { err } from '../../shared/model/result.ts';
import type { Session } from '../session/session.ts';
import { sessionDirectory, Sessions, sharedDirectory } from '../session/sessions.ts';
import { FakeContainerEngine } from '../testing/fake_container_engine.ts';
import { FakeClock } from '../testing/fakes.ts';
import { fakeSessionCa } from '../testing/fake_session_ca.ts';
import type { NamespaceRights } from '../../sandbox/engine/namespace_rights.ts';
import { type ListenerKind, SessionListeners } from './session_listeners.ts';
import { SAMPLE_SANDBOX } from '../testing/sample_sandbox.ts';

const CONTAINER = 'c'.repeat(64);

let home: string;
let engine: FakeContainerEngine;
let rights: NamespaceRights;
let kinds: ListenerKind[];
let servers: Server[];
let ownPort: number;
let listeners: SessionListeners;
let sessions: Sessions;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-listeners-'));
  engine = new FakeContainerEngine();
  rights = 'none';
  kinds = [];
  servers = [];
  ownPort = 0;
  listeners = new SessionListeners({
    makeListener: (kind) => {
      kinds.push(kind);
      const server = createServer((socket) => socket.end('here'));
      servers.push(server);
      return server;
    },
    engineAt: () => engine,
    rightsAt: () => rights,
    kernelRelease: '6.1.0-18-amd64',
    sandboxes: join(home, 'sandboxes'),
    ownPort: () => ownPort,
    homeLabel: 'home',
    user: '1000:1000',
    warn: () => undefined,
    pause: () => Promise.resolve(),
    proc: join(home, 'proc'),
  });
  ownMounts(CONTAINER);
  sessions = new Sessions({
    directory: join(home, 'sessions'),
    clock: new FakeClock(),
    maxTunnelsPerSession: 5,
    createCa: (at) => fakeSessionCa(at),
    systemRoots: () => '',
  });
});

afterEach(async () => {
  listeners.close();
  await sessions.stop();
  rmSync(home, { recursive: true });
});

/** Makes this process one that has a container's files mounted. */
function ownMounts(containerId: string): void {
  const proc = join(home, 'proc');
  mkdirSync(join(proc, String(process.pid)), { recursive: true });
  writeFileSync(join(proc, String(process.pid), 'mountinfo'), `1 2 0:1 /containers/${containerId}/hosts /etc/hosts`);
  for (const name of ['self', String(process.pid)]) {
    mkdirSync(join(proc, name), { recursive: true });
    rmSync(join(proc, name, 'ns'), { force: true });
    symlinkSync(`/proc/${name}/ns`, join(proc, name, 'ns'));
  }
}

async function launchSession(change: Partial<typeof SAMPLE_SANDBOX> = {}): Promise<Session> {
  const sandbox = { ...SAMPLE_SANDBOX, ...change };
  const { session } = await sessions.create({ name: null, ttlSeconds: 60, sandbox });
  session.containerId = CONTAINER;
  return session;
}

function readGreeting(at: number | string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = typeof at === 'string' ? connect(at) : connect(at, '127.0.0.1');
    socket.once('data', (data) => resolve(data.toString()));
    socket.once('error', reject);
  });
}

describe('an engine whose containers run in a virtual machine', () => {
  beforeEach(() => {
    engine.kernel = '6.6.87-linuxkit';
    engine.anyImage = true;
    engine.add(CONTAINER, null, null);
  });

  it.each(['root', 'rootless', 'none'] as const)(
    'has a companion with a stream in it, whatever process the engine names and the sidecar may enter: %s',
    async (own) => {
      rights = own;
      for (const egress of ['open', 'sealed'] as const) {
        expect(await listeners.planFor({ ...SAMPLE_SANDBOX, egress })).toMatchObject({
          ok: true,
          value: { listener: 'namespace', address: '127.0.0.1', port: 7421 },
        });
      }
      const session = await launchSession({ egress: 'sealed' });
      expect(await listeners.open(session, process.pid, true)).toMatchObject({ ok: true });
      expect([session.container, session.companion]).toEqual([null, session.companion]);
      expect(kinds.map(({ kind }) => kind)).toEqual(['session', 'relay']);
      expect(engine.created).toMatchObject([
        { network: { container: CONTAINER }, image: SAMPLE_SANDBOX.imageId, mounts: [], stdin: true },
      ]);
      await sessions.end(session.id);
      expect(servers.filter(({ listening }) => listening)).toEqual([]);
    },
  );

  it('is known by its name too, where it has the kernel of this machine', async () => {
    engine.kernel = '6.1.0-18-amd64';
    engine.system = 'Docker Desktop';
    expect(await listeners.planFor(SAMPLE_SANDBOX)).toMatchObject({ ok: true, value: { listener: 'namespace' } });
    const session = await launchSession();
    expect(await listeners.open(session, process.pid, false)).toMatchObject({ ok: true });
    expect(engine.created).toHaveLength(1);
  });

  it('ends a session with its container, as the engine says', async () => {
    const session = await launchSession({ egress: 'sealed' });
    await listeners.open(session, process.pid, false);
    await sessions.sweep();
    expect(session.ended).toBe(false);
    engine.end(CONTAINER);
    await vi.waitFor(() => expect(session.containerIsOver).toBe(true), { timeout: 60_000 });
    await sessions.sweep();
    expect(session.ended).toBe(true);
  });

  it('restores a session with another stream, unless its container has ended meanwhile', async () => {
    const session = await launchSession({ egress: 'sealed' });
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: false };
    expect(await listeners.reopen(session)).toEqual({ ok: true, value: undefined });
    expect(engine.created).toHaveLength(1);
    engine.containers = [];
    expect(await listeners.reopen(session)).toMatchObject({ ok: false, error: { reason: 'not_the_container' } });
  });

  it.each([null, '6.1.0-18-amd64'])('has no process here, though it says %s', async (kernel) => {
    engine.kernel = kernel;
    engine.pids.set(CONTAINER, process.pid);
    ownMounts('d'.repeat(64));
    for (const own of ['root', 'rootless', 'none'] as const) {
      rights = own;
      const session = await launchSession({ egress: 'sealed' });
      expect(await listeners.open(session, process.pid, true)).toMatchObject({
        ok: false,
        error: { reason: 'not_the_container' },
      });
      expect(session.container).toBeNull();
    }
    expect([kinds, engine.created]).toEqual([[], []]);
  });

  it.each(['root', 'rootless', 'none'] as const)(
    'is not taken for one of this machine while it is silent: %s',
    async (own) => {
      rights = own;
      engine.pids.set(CONTAINER, process.pid);
      const session = await launchSession({ egress: 'sealed' });
      vi.spyOn(engine, 'host').mockResolvedValueOnce(
        err({ reason: 'engine_timeout', message: 'no answer', fixes: [] }),
      );
      expect(await listeners.open(session, process.pid, false)).toEqual(
        err({ reason: 'engine_unavailable', message: 'no answer' }),
      );
      expect([kinds, engine.created]).toEqual([[], []]);
    },
  );
});

describe("the proxy's address for a container", () => {
  it.each(['root', 'rootless'] as const)('is inside its own network for any egress mode: %s', async (own) => {
    rights = own;
    for (const egress of ['open', 'sealed'] as const) {
      expect(await listeners.planFor({ ...SAMPLE_SANDBOX, egress })).toEqual({
        ok: true,
        value: { listener: 'namespace', address: '127.0.0.1', port: 7421 },
      });
    }
    expect(kinds).toEqual([]);
  });

  it("is the bridge's gateway if the sidecar may not enter that network; one listener serves all", async () => {
    const [one, two] = await Promise.all([listeners.planFor(SAMPLE_SANDBOX), listeners.planFor(SAMPLE_SANDBOX)]);
    expect(one).toEqual(two);
    expect(one).toMatchObject({ ok: true, value: { listener: 'gateway', address: '127.0.0.1' } });
    expect(kinds).toEqual([{ kind: 'gateway', address: '127.0.0.1' }]);
    expect(one.ok && (await readGreeting(one.value.port))).toBe('here');
  });

  it("has the sidecar's own port at the gateway, or a free one", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    ownPort = typeof address === 'object' && address !== null ? address.port : 0;
    const plan = await listeners.planFor(SAMPLE_SANDBOX);
    expect(plan.ok && plan.value.port).not.toBe(ownPort);
    await new Promise((resolve) => taken.close(resolve));
  });

  it.each(['sealed', 'sealed,public'] as const)(
    'is inside its own network for %s, if the sidecar may not enter that network',
    async (egress) => {
      expect(await listeners.planFor({ ...SAMPLE_SANDBOX, egress })).toEqual({
        ok: true,
        value: { listener: 'namespace', address: '127.0.0.1', port: 7421 },
      });
      expect(kinds).toEqual([]);
    },
  );

  it('does not exist if the engine does not answer or has no bridge; the next attempt asks again', async () => {
    engine.down = true;
    expect(await listeners.planFor(SAMPLE_SANDBOX)).toMatchObject({ error: { reason: 'engine_unavailable' } });
    engine.down = false;
    engine.gateway = null;
    expect(await listeners.planFor(SAMPLE_SANDBOX)).toMatchObject({ error: { reason: 'egress_unavailable' } });
    engine.gateway = '192.0.2.1';
    expect(await listeners.planFor(SAMPLE_SANDBOX)).toMatchObject({ error: { reason: 'listener_failed' } });
    engine.gateway = '127.0.0.1';
    expect(await listeners.planFor(SAMPLE_SANDBOX)).toMatchObject({ ok: true });
  });
});

describe("opening a container's listener", () => {
  it('with a gateway only checks the process, and the session ends with it', async () => {
    const session = await launchSession();
    engine.pids.set(CONTAINER, process.pid);
    expect(await listeners.open(session, process.pid, false)).toMatchObject({
      ok: true,
      value: { listener: 'gateway' },
    });
    expect(session.container?.pid).toBe(process.pid);
  });

  it('is refused for a process that the engine does not name', async () => {
    const session = await launchSession();
    engine.pids.set(CONTAINER, 1);
    expect(await listeners.open(session, process.pid, false)).toMatchObject({
      error: { reason: 'not_the_container' },
    });
    expect(session.container).toBeNull();
  });

  it('opens no relay on a bridge, where it would act for every container', async () => {
    const session = await launchSession();
    engine.pids.set(CONTAINER, process.pid);
    expect(await listeners.open(session, process.pid, true)).toMatchObject({ error: { reason: 'egress_unavailable' } });
    expect(session.container).toBeNull();
  });

  it('without the right to enter a sealed one starts a companion, with a socket for each kind of client', async () => {
    const session = await launchSession({ egress: 'sealed' });
    engine.pids.set(CONTAINER, process.pid);
    expect(await listeners.open(session, process.pid, true)).toMatchObject({ ok: true });
    expect(kinds.map(({ kind }) => kind)).toEqual(['session', 'relay']);
    expect(await readGreeting(join(session.directory, 'companion', '7422.sock'))).toBe('here');
    expect(engine.created).toMatchObject([
      { network: { container: CONTAINER }, labels: { 'svc.session': session.id, 'svc.home': 'home' } },
    ]);
    // After a restart of the sidecar the same one serves on.
    for (const server of servers.splice(0)) server.close();
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: true };
    expect(await listeners.reopen(session)).toEqual({ ok: true, value: undefined });
    expect(engine.created).toHaveLength(1);
    await sessions.end(session.id);
    expect(servers.filter(({ listening }) => listening)).toEqual([]);
  });

  it('starts no companion for a process that the engine does not name', async () => {
    const session = await launchSession({ egress: 'sealed' });
    engine.pids.set(CONTAINER, 1);
    expect(await listeners.open(session, process.pid, false)).toMatchObject({ error: { reason: 'not_the_container' } });
    expect([engine.created, kinds]).toEqual([[], []]);
  });

  it('removes the companion of a session that has ended meanwhile', async () => {
    const session = await launchSession({ egress: 'sealed' });
    engine.pids.set(CONTAINER, process.pid);
    const opening = listeners.open(session, process.pid, false);
    await sessions.end(session.id);
    await opening;
    expect(engine.containers).toEqual([]);
    expect(servers.filter(({ listening }) => listening)).toEqual([]);
  });

  it("is refused in the host's own network, and nothing listens", async () => {
    rights = 'root';
    const session = await launchSession();
    engine.pids.set(CONTAINER, process.pid);
    expect(await listeners.open(session, process.pid, true)).toMatchObject({ error: { reason: 'shared_network' } });
    expect([kinds, session.container]).toEqual([[], null]);
  });
});

describe('a session with a sandbox of its launcher', () => {
  const folder = '4711-12345';
  const socket = (): string => join(home, 'sandboxes', folder, 'proxy.sock');

  async function sandboxedSession(): Promise<{ readonly session: Session; readonly token: string }> {
    mkdirSync(join(home, 'sandboxes', folder), { recursive: true });
    const hostSandbox = { mode: 'bubblewrap', egress: 'sealed', folder } as const;
    const { session, token } = await sessions.create({ name: null, ttlSeconds: 60, hostSandbox });
    return { session, token: token ?? '' };
  }

  it('has a socket in its folder, which ends with it', async () => {
    const { session } = await sandboxedSession();
    expect(await listeners.openSocket(session)).toEqual({ ok: true, value: undefined });
    expect(kinds).toEqual([{ kind: 'session', session }]);
    expect(await readGreeting(socket())).toBe('here');
    // After a restart of the sidecar the socket of before may still be there.
    expect(await listeners.reopen(session)).toEqual({ ok: true, value: undefined });
    expect(await readGreeting(socket())).toBe('here');
    await sessions.end(session.id);
    await expect(readGreeting(socket())).rejects.toThrow('ENOENT');
  });

  it('is refused if the folder is not there', async () => {
    const { session } = await sandboxedSession();
    rmSync(join(home, 'sandboxes'), { recursive: true });
    expect(await listeners.openSocket(session)).toMatchObject({ ok: false, error: { reason: 'listener_failed' } });
  });

  it("is unknown at the sidecar's own port, and the only one known at its socket", async () => {
    const { session, token } = await sandboxedSession();
    const other = await sessions.create({ name: null, ttlSeconds: 60 });
    expect(sharedDirectory(sessions).authenticate(session.id, token)).toBeNull();
    expect(sharedDirectory(sessions).authenticate(other.session.id, other.token ?? '')).toBe(other.session);
    const own = sessionDirectory(sessions, session.id);
    expect(own.authenticate(session.id, token)).toBe(session);
    expect(own.authenticate(other.session.id, other.token ?? '')).toBeNull();
  });

  it('is sealed, and reaches nothing more by default', async () => {
    const { session } = await sandboxedSession();
    expect([session.sealed, session.allowList]).toEqual([true, { hosts: [], named: [] }]);
  });
});
