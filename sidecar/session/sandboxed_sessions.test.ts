import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeContainerEngine } from '../testing/fake_container_engine.ts';
import { FakeClock } from '../testing/fakes.ts';
import { fakeSessionCa } from '../testing/fake_session_ca.ts';
import { readContainerRecord, writeContainerRecord } from './container_record.ts';
import type { ProcessIdentity } from '../../machine/process_identity.ts';
import type { Sandbox } from './sandbox.ts';
import type { Session } from './session.ts';
import { SessionContainers } from './session_containers.ts';
import { type NewSession, sessionDirectory, Sessions, sharedDirectory } from './sessions.ts';
import { SAMPLE_SANDBOX } from '../testing/sample_sandbox.ts';

const HOME = 'home-label';
const RUNTIME = { program: 'docker', endpoint: 'unix:///run/test.sock' } as const;
const SANDBOX: Sandbox = { ...SAMPLE_SANDBOX, egress: 'sealed' };
const OWNER: ProcessIdentity = { pid: 4711, started: '1' };
const INIT: ProcessIdentity = { pid: 4712, started: '2' };
const OLD = `ses_${'0'.repeat(26)}`;

let home: string;
let directory: string;
let clock: FakeClock;
let engine: FakeContainerEngine;
let sessions: Sessions;
let gone: Set<number>;
let warnings: string[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-sandboxed-'));
  directory = join(home, 'sessions');
  clock = new FakeClock();
  engine = new FakeContainerEngine();
  gone = new Set();
  warnings = [];
  sessions = newSessions();
});

afterEach(async () => {
  await sessions.stop();
  rmSync(home, { recursive: true });
});

function newSessions(): Sessions {
  return new Sessions({
    directory,
    clock,
    maxTunnelsPerSession: 5,
    createCa: (at) => fakeSessionCa(at),
    systemRoots: () => '',
    containers: new SessionContainers({
      engineAt: () => engine,
      homeLabel: HOME,
      warn: (message) => warnings.push(message),
      pause: () => Promise.resolve(),
    }),
    isRunning: ({ pid }) => !gone.has(pid),
  });
}

async function launchSession(change: Partial<NewSession> = {}): Promise<{ session: Session; token: string }> {
  const { session, token } = await sessions.create({
    name: null,
    ttlSeconds: 3_600,
    owner: OWNER,
    sandbox: SANDBOX,
    ...change,
  });
  engine.add('c1', session.id, HOME);
  session.containerId = 'c1';
  session.container = INIT;
  return { session, token: token ?? '' };
}

describe('a session with a container', () => {
  it('has an owner-only record of its engine from the start', async () => {
    const { session } = await launchSession();
    expect(await readContainerRecord(session.directory)).toEqual({
      sessionId: session.id,
      containerId: null,
      runtime: RUNTIME,
    });
    expect(statSync(join(session.directory, 'container.json')).mode & 0o777).toBe(0o600);
  });

  it.each([{ listener: 'namespace' as const, address: '127.0.0.1', port: 7421, relay: false }, null])(
    'is known to its own listener only (%o)',
    async (listener) => {
      const { session, token } = await launchSession();
      session.listener = listener;
      expect(sharedDirectory(sessions).authenticate(session.id, token)).toBeNull();
      expect(sessionDirectory(sessions, session.id).authenticate(session.id, token)).toBe(session);
    },
  );

  it('is known on the bridge if it has no listener of its own', async () => {
    const { session, token } = await launchSession();
    session.listener = { listener: 'gateway', address: '172.17.0.1', port: 7421, relay: false };
    expect(sharedDirectory(sessions).authenticate(session.id, token)).toBe(session);
    expect(sharedDirectory(sessions).authenticate(session.id, `${token}x`)).toBeNull();
  });

  it("'s companion goes when its container ends, even while the container is kept", async () => {
    const { session } = await launchSession();
    engine.add('companion', session.id, HOME);
    session.companion = 'companion';
    gone.add(INIT.pid);
    await sessions.sweep();
    expect(engine.removed).toEqual(['companion']);
    await sessions.end(session.id);
    expect(engine.removed).toEqual(['companion', 'c1']);
  });

  it('lives while its owner and its container run', async () => {
    const { session, token } = await launchSession();
    await sessions.sweep();
    expect(sessions.authenticate(session.id, token)).toBe(session);
    expect(engine.removed).toEqual([]);
  });

  it('ends when its owner exits, and removes its container', async () => {
    const { session, token } = await launchSession();
    const closed: string[] = [];
    session.openTunnel(() => void closed.push('tunnel'));
    gone.add(OWNER.pid);
    await sessions.sweep();
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect([closed, engine.removed, readdirSync(directory)]).toEqual([['tunnel'], ['c1'], []]);
  });

  it('ends with its container; the container itself is kept for its owner', async () => {
    const { session, token } = await launchSession();
    gone.add(INIT.pid);
    await sessions.sweep();
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect([sessions.count, sessions.listKept(), engine.removed]).toEqual([0, [session], []]);
    expect(readdirSync(session.directory)).toEqual(['container.json']);
    gone.add(OWNER.pid);
    await sessions.sweep();
    expect([sessions.listKept(), engine.removed, readdirSync(directory)]).toEqual([[], ['c1'], []]);
  });

  it('keeps its ended container for its logs if detached, until it is stopped', async () => {
    const { session } = await launchSession({ owner: null, sandbox: { ...SANDBOX, detached: true } });
    gone.add(INIT.pid);
    await sessions.sweep();
    await sessions.sweep();
    expect([sessions.find(session.id)?.ended, engine.removed]).toEqual([true, []]);
    expect(await sessions.end(session.id)).toBe(true);
    expect([sessions.find(session.id), engine.removed, existsSync(session.directory)]).toEqual([null, ['c1'], false]);
  });

  it('removes its container when it is ended, and when the sidecar stops', async () => {
    const { session } = await launchSession();
    await sessions.end(session.id);
    expect(engine.removed).toEqual(['c1']);
    await launchSession();
    await sessions.stop();
    expect([engine.removed, readdirSync(directory)]).toEqual([['c1', 'c1'], []]);
  });

  it('leaves containers without our labels alone', async () => {
    const { session } = await launchSession();
    engine.containers = [];
    engine.add('other-home', session.id, 'another');
    engine.add('no-home', session.id, null);
    engine.add('other-session', OLD, HOME);
    await sessions.end(session.id);
    expect(engine.removed).toEqual([]);
  });

  it('closes everything opened for it, once', async () => {
    const { session } = await launchSession();
    let closed = 0;
    session.onEnd(() => {
      closed += 1;
    });
    await sessions.end(session.id);
    await session.end();
    expect(closed).toBe(1);
    session.onEnd(() => {
      closed += 1;
    });
    expect(closed).toBe(2);
  });
});

describe('after a crash', () => {
  async function leftOver(id = OLD): Promise<string> {
    const at = join(directory, id);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'ca.key'), 'KEY');
    await writeContainerRecord(at, { sessionId: id, containerId: 'c0', runtime: RUNTIME });
    return at;
  }

  it('the next start removes keys and containers, also of a session without a record', async () => {
    const at = await leftOver();
    engine.add('c0', OLD, HOME);
    engine.add('lost', `ses_${'9'.repeat(26)}`, HOME);
    engine.add('foreign', OLD, 'another');
    await sessions.start();
    expect(engine.removed.toSorted()).toEqual(['c0', 'lost']);
    expect(existsSync(at)).toBe(false);
  });

  it('the key is removed even if the engine is down; the record stays for the start after that', async () => {
    const at = await leftOver();
    engine.add('c0', OLD, HOME);
    engine.down = true;
    await sessions.start();
    expect(readdirSync(at)).toEqual(['container.json']);
    expect(warnings).toEqual([expect.stringContaining('the engine is down')]);
    engine.down = false;
    await sessions.stop();
    sessions = newSessions();
    await sessions.start();
    expect([engine.removed, existsSync(at)]).toEqual([['c0'], false]);
  });

  it.each([
    ['that is damaged', '{'],
    ['of another session', JSON.stringify({ version: 1, session_id: 'ses_other', container_id: null, ...RUNTIME })],
    [
      'of a remote engine',
      JSON.stringify({ version: 1, session_id: OLD, container_id: 'c', program: 'docker', endpoint: 'tcp://x' }),
    ],
    [
      'of another program',
      JSON.stringify({ version: 1, session_id: OLD, container_id: 'c', program: '/bin/sh', endpoint: 'unix:///x' }),
    ],
  ])('a record %s is ignored', async (_what, text) => {
    const at = await leftOver();
    writeFileSync(join(at, 'container.json'), text);
    engine.add('c0', OLD, HOME);
    await sessions.start();
    expect([engine.removed, existsSync(at)]).toEqual([[], false]);
  });

  it('a link in place of a folder is removed and not followed', async () => {
    const outside = join(home, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'precious'), '');
    await writeContainerRecord(outside, { sessionId: OLD, containerId: 'c0', runtime: RUNTIME });
    mkdirSync(directory);
    symlinkSync(outside, join(directory, OLD));
    await sessions.start();
    expect([readdirSync(directory), readdirSync(outside)]).toEqual([[], ['container.json', 'precious']]);
  });

  it('is gone with its record if its container was being removed already when it ended', async () => {
    const { session } = await launchSession();
    engine.refusals = 3;
    await sessions.end(session.id);
    expect([engine.removed, existsSync(session.directory), warnings]).toEqual([['c1'], false, []]);
  });

  it('what cannot be removed at the end of a session is removed by the next start', async () => {
    const { session } = await launchSession();
    engine.down = true;
    await sessions.end(session.id);
    expect(readdirSync(session.directory)).toEqual(['container.json']);
    engine.down = false;
    sessions = newSessions();
    await sessions.start();
    expect([engine.removed, readdirSync(directory)]).toEqual([['c1'], []]);
  });
});
