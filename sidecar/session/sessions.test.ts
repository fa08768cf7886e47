import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../testing/fakes.ts';
import { fakeSessionCa } from '../testing/fake_session_ca.ts';
import { caBundle, systemRootsPem } from './ca_bundle.ts';
import type { Session } from './session.ts';
import { type NewSession, Sessions } from './sessions.ts';

let directory: string;
let clock: FakeClock;
let sessions: Sessions;
let disposed: string[];
let closedSessions: string[];

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'svc-sessions-')), 'sessions');
  clock = new FakeClock();
  disposed = [];
  closedSessions = [];
  sessions = new Sessions({
    directory,
    clock,
    maxTunnelsPerSession: 2,
    createCa: (at, id) => fakeSessionCa(at, () => disposed.push(id)),
    systemRoots: () => 'SYSTEM ROOTS\n',
    onClosed: (id) => closedSessions.push(id),
  });
});

afterEach(async () => {
  await sessions.stop();
  rmSync(join(directory, '..'), { recursive: true });
});

interface Made {
  readonly session: Session;
  readonly token: string;
}

async function create(change: Partial<NewSession> = {}): Promise<Made> {
  const { session, token } = await sessions.create({ name: 'demo', ttlSeconds: 60, ...change });
  return { session, token: token ?? '' };
}

describe('a session', () => {
  it('says that it has closed once its tunnels have ended', async () => {
    const { session } = await create();
    const tunnel = Promise.withResolvers<void>();
    session.openTunnel(() => tunnel.promise);
    const ending = sessions.end(session.id);
    await new Promise(setImmediate);
    expect(closedSessions).toEqual([]);
    tunnel.resolve();
    await ending;
    expect(closedSessions).toEqual([session.id]);
  });

  it('has the reasons of its events, also of those that come while it ends', async () => {
    const { session } = await create();
    const tunnel = Promise.withResolvers<void>();
    session.openTunnel(() => tunnel.promise);
    sessions.noteReason(session.id, 'first');
    const ending = sessions.end(session.id);
    sessions.noteReason(session.id, 'last');
    tunnel.resolve();
    await ending;
    sessions.noteReason(session.id, 'later');
    expect([...(session.reasons ?? [])]).toEqual(['first', 'last']);
  });

  it('does not know the reasons of its events if they are too many', async () => {
    const { session } = await create();
    for (let at = 0; at <= 101; at += 1) sessions.noteReason(session.id, `reason ${at}`);
    expect(session.reasons).toBeNull();
  });

  it('has an id, a token of 256 bits, its CA and a bundle of the system roots and the CA', async () => {
    const { session, token } = await create();
    expect(session.id).toMatch(/^ses_[0-9a-z]{26}$/);
    expect(token).toMatch(/^svc_session_[A-Za-z0-9_-]{43}$/);
    expect(readFileSync(session.caBundlePath, 'utf8')).toBe('SYSTEM ROOTS\nTEST CA\n');
    expect(statSync(session.directory).mode & 0o777).toBe(0o700);
    expect(session).toMatchObject({ name: 'demo', createdAt: clock.now(), expiresAt: clock.now() + 60_000 });
  });

  it('keeps its token only as a hash', async () => {
    const { token } = await create();
    expect(inspect(sessions, { depth: 9, showHidden: true })).not.toContain(token);
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    expect(files).toHaveLength(2);
    for (const file of files) expect(readFileSync(join(file.parentPath, file.name), 'utf8')).not.toContain(token);
  });

  it('is opened by its own id and token together, and by nothing else', async () => {
    const one = await create();
    const two = await create();
    expect(sessions.authenticate(one.session.id, one.token)).toBe(one.session);
    expect(sessions.authenticate(one.session.id, two.token)).toBeNull();
    expect(sessions.authenticate(one.session.id, '')).toBeNull();
    expect(sessions.authenticate(one.session.id, `${one.token}x`)).toBeNull();
    expect(sessions.authenticate('ses_unknown', one.token)).toBeNull();
    expect(sessions.authenticate('', '')).toBeNull();
    expect(sessions.withToken(two.token)).toBe(two.session);
    expect(sessions.withToken('')).toBeNull();
  });

  it('that is a self-test opens only the proxy: its token alone says nothing to the local API', async () => {
    const { session, token } = await sessions.create({ name: 'svc doctor', ttlSeconds: 60, selfTest: true });
    expect(sessions.authenticate(session.id, token ?? '')).toBe(session);
    expect(sessions.withToken(token ?? '')).toBeNull();
  });

  it('opens nothing once it has expired, and then ends', async () => {
    const { session, token } = await create();
    clock.advance(59_999);
    expect(sessions.authenticate(session.id, token)).toBe(session);
    clock.advance(1);
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect(sessions.withToken(token)).toBeNull();
    expect(sessions.list()).toEqual([]);
    await sessions.sweep();
    expect([sessions.count, disposed, existsSync(session.directory)]).toEqual([0, [session.id], false]);
  });

  it('has its limits until its last tunnel is closed', async () => {
    const limits = { requestsPerDay: 5 };
    const { session } = await sessions.create({ name: null, ttlSeconds: 60, limits });
    let whileClosing: unknown = null;
    session.openTunnel(() => void (whileClosing = sessions.limitsOf(session.id)));
    clock.advance(60_000);
    expect([sessions.get(session.id), sessions.limitsOf(session.id)]).toEqual([null, limits]);
    await sessions.sweep();
    expect([whileClosing, sessions.limitsOf(session.id)]).toEqual([limits, null]);
  });

  it('continues when its tunnels are closed, and new ones can be opened', async () => {
    const { session, token } = await create();
    const closed: string[] = [];
    session.openTunnel(() => void closed.push('one'));
    await sessions.closeTunnels();
    expect([closed, session.openTunnels]).toEqual([['one'], 0]);
    expect(sessions.authenticate(session.id, token)).toBe(session);
    expect(session.openTunnel(() => undefined)).not.toBeNull();
  });

  it('opens nothing once it has ended, and leaves nothing behind', async () => {
    const { session, token } = await create();
    expect(await sessions.end(session.id)).toBe(true);
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect(existsSync(session.directory)).toBe(false);
    expect(disposed).toEqual([session.id]);
    expect([await sessions.end(session.id), await sessions.end('ses_other')]).toEqual([true, false]);
  });

  it('counts its tunnels up to the limit, and a closed one makes room once', async () => {
    const { session } = await create();
    const first = session.openTunnel(() => undefined);
    session.openTunnel(() => undefined);
    expect(session.openTunnel(() => undefined)).toBeNull();
    first?.();
    first?.();
    expect(session.openTunnels).toBe(1);
    expect(session.openTunnel(() => undefined)).not.toBeNull();
    expect(session.openTunnel(() => undefined)).toBeNull();
  });

  it('closes its tunnels when it ends, waits for their events, and accepts no new ones', async () => {
    const { session } = await create();
    const closed: string[] = [];
    session.openTunnel(async () => {
      await new Promise(setImmediate);
      closed.push('slow');
    });
    session.openTunnel(() => {
      throw new Error('already gone');
    });
    await sessions.end(session.id);
    expect(closed).toEqual(['slow']);
    expect(session.openTunnel(() => undefined)).toBeNull();
  });

  it('ends even if a tunnel never reports that it is closed', async () => {
    const { session } = await create();
    session.openTunnel(() => new Promise(() => undefined));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const ended = sessions.end(session.id);
    await vi.advanceTimersByTimeAsync(1_000);
    vi.useRealTimers();
    expect(await ended).toBe(true);
  });
});

describe('sessions', () => {
  it('are listed, oldest first', async () => {
    const one = await create();
    const two = await create();
    expect(sessions.list()).toEqual([one.session, two.session]);
  });

  it('leave no directory if the CA cannot be created', async () => {
    const failing = new Sessions({
      directory,
      clock,
      maxTunnelsPerSession: 1,
      createCa: () => Promise.reject(new Error('no')),
      systemRoots: () => '',
    });
    await expect(failing.create({ name: null, ttlSeconds: 1 })).rejects.toThrow('no');
    expect(readdirSync(directory)).toEqual([]);
  });

  it('of an earlier run are removed at the start, and nothing else is', async () => {
    const outside = join(directory, '..', 'outside');
    const left = join(directory, `ses_${'0'.repeat(26)}`);
    mkdirSync(left, { recursive: true });
    mkdirSync(outside);
    writeFileSync(join(left, 'ca.key'), 'KEY');
    writeFileSync(join(outside, 'precious'), '');
    symlinkSync(outside, join(directory, `ses_${'1'.repeat(26)}`));
    writeFileSync(join(directory, 'note.txt'), '');
    await sessions.start();
    expect(readdirSync(directory)).toEqual(['note.txt']);
    expect(existsSync(join(outside, 'precious'))).toBe(true);
  });

  it('all end when the sidecar stops', async () => {
    await create();
    await create();
    await sessions.stop();
    expect([sessions.count, disposed.length, readdirSync(directory)]).toEqual([0, 2, []]);
  });
});

describe('the bundle of roots', () => {
  it('is the first system bundle that exists', () => {
    const path = join(directory, '..', 'roots.pem');
    writeFileSync(path, 'ROOTS');
    expect(systemRootsPem(['/nowhere.pem', path])).toBe('ROOTS\n');
  });

  it("is Node's own if the system has none", () => {
    expect(systemRootsPem(['/nowhere.pem'])).toContain('-----BEGIN CERTIFICATE-----');
  });

  it('ends with the session CA', () => {
    expect(caBundle('ROOTS\n', 'CA\n\n')).toBe('ROOTS\nCA\n');
  });
});
