import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../testing/fakes.ts';
import { fakeSessionCa } from '../testing/fake_session_ca.ts';
import { samplePlanLockPayload } from '../testing/sample_plan_lock.ts';
import type { CreatedScope, Session } from './session.ts';
import { Sessions } from './sessions.ts';
import type { StepReach } from './step_scope.ts';

const STEP: StepReach = {
  stepId: 'fetch',
  effect: 'read',
  hosts: ['api.example.test'],
  timeoutSeconds: 60,
  scopes: [],
  choice: null,
};

let home: string;
let clock: FakeClock;
let sessions: Sessions;
let session: Session;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-scopes-'));
  clock = new FakeClock();
  sessions = new Sessions({
    directory: join(home, 'sessions'),
    clock,
    maxTunnelsPerSession: 2,
    createCa: (directory) => fakeSessionCa(directory),
    systemRoots: () => '',
  });
  session = await planSession();
});

afterEach(async () => {
  vi.useRealTimers();
  await sessions.stop();
  rmSync(home, { recursive: true });
});

async function planSession(ttlSeconds = 3_600): Promise<Session> {
  const lock = await samplePlanLockPayload();
  const created = await sessions.create({ name: null, ttlSeconds, lock });
  expect(created.token).toBeNull();
  return created.session;
}

function open(change: Partial<StepReach> = {}, of = session): CreatedScope {
  return of.openScope({ ...STEP, ...change }, clock.now());
}

describe("a plan's session", () => {
  it.each(['', 'null', 'undefined', `svc_session_${'A'.repeat(43)}`])('does not open a tunnel itself: %j', (token) => {
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect(sessions.withToken(token)).toBeNull();
  });
});

describe('a scope', () => {
  it('has an id and a token of 256 bits, which is kept only as a hash', () => {
    const { scope, token } = open();
    expect(scope.scopeId).toMatch(/^scp_[0-9a-z]{26}$/);
    expect(token).toMatch(/^svc_scope_[A-Za-z0-9_-]{43}$/);
    expect(open().token).not.toBe(token);
    expect(inspect(sessions, { depth: 12, showHidden: true })).not.toContain(token);
  });

  it('is opened by its token and the id of its session, and reaches its hosts', () => {
    const { scope, token } = open();
    const opened = sessions.authenticate(session.id, token);
    expect(opened).toBe(scope);
    expect([opened?.id, opened?.reach?.stepId]).toEqual([session.id, 'fetch']);
    expect(
      ['api.example.test', 'API.example.test', 'x.api.example.test', ''].map((h) => opened?.reach?.includes(h)),
    ).toEqual([true, false, false, false]);
  });

  it("of another session opens nothing in this one, and its token is not a session's", async () => {
    const other = await planSession();
    const { token } = open({}, other);
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect(sessions.authenticate(other.id, token)?.id).toBe(other.id);
    expect(sessions.withToken(token)).toBeNull();
  });

  it('opens nothing once it has expired', () => {
    const { scope, token } = open({ timeoutSeconds: 60 });
    expect(scope.expiresAt).toBe(clock.now() + 60_000);
    clock.advance(59_999);
    expect(sessions.authenticate(session.id, token)).toBe(scope);
    clock.advance(1);
    expect(sessions.authenticate(session.id, token)).toBeNull();
  });

  it('ends with its session at the latest', async () => {
    const short = await planSession(30);
    expect(open({ timeoutSeconds: 900 }, short).scope.expiresAt).toBe(short.expiresAt);
  });

  it('closes its tunnels by itself when it expires', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { scope } = open({ timeoutSeconds: 60 });
    const closed: string[] = [];
    scope.openTunnel(() => void closed.push('one'));
    await vi.advanceTimersByTimeAsync(59_999);
    expect(closed).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(closed).toEqual(['one']);
  });

  it('closes its tunnels by the clock too: a timer stands still while the machine sleeps', async () => {
    const { scope } = open({ timeoutSeconds: 60 });
    const later = open({ stepId: 'other', timeoutSeconds: 120 });
    const closed: string[] = [];
    scope.openTunnel(() => void closed.push('one'));
    later.scope.openTunnel(() => void closed.push('two'));
    clock.advance(59_999);
    await sessions.sweep();
    expect(closed).toEqual([]);
    clock.advance(1);
    await sessions.sweep();
    expect(closed).toEqual(['one']);
  });

  it('opens nothing once revoked; its tunnels are closed, those of another scope are not', async () => {
    const one = open();
    const two = open({ stepId: 'other' });
    const closed: string[] = [];
    one.scope.openTunnel(() => void closed.push('one'));
    two.scope.openTunnel(() => void closed.push('two'));
    expect(await sessions.endScope(one.scope.scopeId)).toBe(true);
    expect(closed).toEqual(['one']);
    expect(sessions.authenticate(session.id, one.token)).toBeNull();
    expect(sessions.authenticate(session.id, two.token)).toBe(two.scope);
    expect(one.scope.openTunnel(() => undefined)).toBeNull();
    expect(await sessions.endScope(one.scope.scopeId)).toBe(false);
  });

  it('ends with its session', async () => {
    const { scope, token } = open();
    const closed: string[] = [];
    scope.openTunnel(() => void closed.push('one'));
    await sessions.end(session.id);
    expect(closed.length).toBeGreaterThan(0);
    expect(sessions.authenticate(session.id, token)).toBeNull();
    expect(scope.openTunnel(() => undefined)).toBeNull();
  });

  it("counts its tunnels as its session's", () => {
    const { scope } = open();
    const first = scope.openTunnel(() => undefined);
    scope.openTunnel(() => undefined);
    expect([scope.openTunnel(() => undefined), scope.openTunnels, session.openTunnels]).toEqual([null, 2, 2]);
    first?.();
    expect([scope.openTunnels, session.openTunnels]).toEqual([1, 1]);
  });
});
