import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sampleConnector } from '../../shared/connect/testing/sample_connector.ts';
import { err, ok } from '../../shared/model/result.ts';
import { resolve } from '../../shared/resolve/resolve.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { FakeClock } from '../testing/fakes.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { SECRET_FOR_A_NEWER_SIDECAR } from '../../shared/model/request_limits.ts';
import { SET_FOR_A_NEWER_SIDECAR } from '../../shared/model/region_set.ts';
import { bearerBinding, sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { Link } from './link.ts';
import { SnapshotSource } from './snapshot.ts';
import { createSnapshotFile, type SnapshotFile } from './snapshot_file.ts';

const HOUR_MS = 3600 * 1000;

let clock: FakeClock;
let link: Link;
let channel: ScriptedChannel;
let directory: string;
let file: SnapshotFile;
let source: SnapshotSource;
let warnings: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  clock = new FakeClock();
  link = new Link();
  channel = new ScriptedChannel(clock, link);
  channel.hold();
  directory = mkdtempSync(join(tmpdir(), 'svc-snapshot-'));
  warnings = [];
  open();
});

afterEach(async () => {
  await source.stop();
  await file.waitForWrites();
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});

function open(): void {
  file = createSnapshotFile({ directory, clock, warn: (message) => warnings.push(message) });
  source = new SnapshotSource({ channel, link, clock, file, snapshotMaxAgeSeconds: 24 * 3600, random: () => 0 });
}

/** Runs everything that needs no more time to pass. */
async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

function change(version: number): void {
  channel.version = version;
  channel.release();
  channel.hold();
}

async function reopen(): Promise<void> {
  await source.stop();
  await file.waitForWrites();
  link = new Link();
  channel = new ScriptedChannel(clock, link);
  channel.hold();
  open();
}

function reasonNow(): string {
  const current = source.current();
  return current.ok ? 'in force' : current.error.reason;
}

describe('the policy in force', () => {
  it('is refused until the first snapshot has arrived', async () => {
    expect(reasonNow()).toBe('control_plane_unavailable');
    channel.hostBindings = [sampleBinding()];
    await source.start();
    await settle();
    const current = source.current();
    expect(current.ok && current.value.bindingsFor('api.example.test')).toHaveLength(1);
    expect(source.status()).toEqual({ version: 1, ageSeconds: 0 });
    expect(source.bindings()).toHaveLength(1);
  });

  it('follows the control plane as soon as it changes', async () => {
    await source.start();
    await settle();
    channel.hostBindings = [sampleBinding({ host: 'new.example.test' })];
    change(2);
    await settle();
    const current = source.current();
    expect(current.ok && current.value.bindingsFor('new.example.test')).toHaveLength(1);
    expect(channel.polls.map((poll) => poll.heldVersion)).toEqual([null, 1, 2]);
  });

  it('is valid for 24 hours after the last successful poll, and not a millisecond longer', async () => {
    await source.start();
    await settle();
    channel.down = 'unreachable';
    clock.advance(24 * HOUR_MS - 1);
    expect(reasonNow()).toBe('in force');
    clock.advance(1);
    expect(reasonNow()).toBe('snapshot_expired');
    expect(source.bindings()).toEqual([]);
  });

  it('is extended by a poll that returns nothing new', async () => {
    await source.start();
    await settle();
    clock.advance(20 * HOUR_MS);
    change(1);
    await settle();
    clock.advance(20 * HOUR_MS);
    expect(reasonNow()).toBe('in force');
    expect(source.status()).toEqual({ version: 1, ageSeconds: 20 * 3600 });
  });

  it('never goes back to an older version, even if that is properly signed', async () => {
    channel.version = 7;
    channel.hostBindings = [sampleBinding()];
    await source.start();
    await settle();
    channel.hostBindings = [];
    change(6);
    await settle();
    expect(source.status()?.version).toBe(7);
    expect(source.bindings()).toHaveLength(1);
    expect(link.lastError?.reason).toBe('version_went_back');
  });

  it('is refused while the sidecar is revoked, and its credentials are dropped', async () => {
    const seen: number[] = [];
    channel.setSecret({ owner: 'personal', path: 'user/demo' }, 'v', '1');
    source.onCredentials((credentials) => seen.push(credentials.length));
    await source.start();
    await settle();
    channel.down = 'revoked';
    channel.release();
    await settle();
    expect(reasonNow()).toBe('control_plane_unavailable');
    expect(seen).toEqual([1, 0]);
  });

  it('reports the credential versions of each new snapshot, and not of a confirmation', async () => {
    const seen: unknown[] = [];
    source.onCredentials((credentials) => seen.push(credentials));
    await source.start();
    await settle();
    change(1);
    channel.setSecret({ owner: 'personal', path: 'user/demo' }, 'v', '9');
    change(2);
    await settle();
    expect(seen).toEqual([[], [{ owner: 'personal', path: 'user/demo', version: '9' }]]);
  });
});

describe('while the control plane is down', () => {
  it('polls again after a pause that doubles up to its limit', async () => {
    channel.down = 'unreachable';
    await source.start();
    await vi.advanceTimersByTimeAsync(60_000);
    const tries = channel.polls.length;
    expect(tries).toBeGreaterThan(20);
    expect(tries).toBeLessThan(35);
  });

  it('polls at once when another call has reached the control plane', async () => {
    channel.down = 'unreachable';
    await source.start();
    await vi.advanceTimersByTimeAsync(60_000);
    const tries = channel.polls.length;
    channel.down = null;
    link.markUp();
    await settle();
    expect(channel.polls.length).toBeGreaterThan(tries);
    expect(reasonNow()).toBe('in force');
  });

  it('does not spin when the control plane answers every long poll at once with nothing new', async () => {
    await source.start();
    channel.release();
    await settle();
    const quick = vi.spyOn(channel, 'snapshot').mockImplementation(() => {
      link.markUp();
      const confirmation = { version: 1, issuedAt: clock.now() };
      return Promise.resolve({ ok: true, value: { kind: 'unchanged', confirmation, jws: '{}' } });
    });
    channel.release();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(quick.mock.calls.length).toBeLessThan(13);
  });
});

describe('waiting for a change', () => {
  const never = new AbortController().signal;

  it('ends at once if the policy already is another one', async () => {
    await source.start();
    await settle();
    await source.waitForChange(0, 60_000, never);
    expect(source.status()?.version).toBe(1);
  });

  it('ends with the next policy, after the timeout, and when the caller leaves', async () => {
    await source.start();
    await settle();
    const left = new AbortController();
    const over: string[] = [];
    void source.waitForChange(1, 60_000, left.signal).then(() => over.push('left'));
    void source.waitForChange(1, 5_000, never).then(() => over.push('late'));
    void source.waitForChange(1, 60_000, never).then(() => over.push('changed'));
    await settle();
    expect(over).toEqual([]);
    left.abort();
    await settle();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(over).toEqual(['left', 'late']);
    change(2);
    await settle();
    expect(over).toEqual(['left', 'late', 'changed']);
  });
});

describe('waiting for a version', () => {
  it('ends at once if the current policy is new enough', async () => {
    channel.version = 5;
    await source.start();
    await settle();
    const polls = channel.polls.length;
    expect(await source.waitForVersion(5, 60_000)).toEqual({ ok: true, value: 5 });
    expect(channel.polls.length).toBe(polls);
  });

  it('asks at once instead of waiting for the pending poll', async () => {
    await source.start();
    await settle();
    channel.version = 2;
    expect(await source.waitForVersion(2, 60_000)).toEqual({ ok: true, value: 2 });
  });

  it('continues until the version arrives', async () => {
    await source.start();
    await settle();
    const waiting = source.waitForVersion(3, 60_000);
    await vi.advanceTimersByTimeAsync(1_000);
    channel.version = 3;
    await vi.advanceTimersByTimeAsync(300);
    expect(await waiting).toEqual({ ok: true, value: 3 });
  });

  it('is refused if the version does not arrive in time', async () => {
    await source.start();
    await settle();
    const waiting = source.waitForVersion(99, 2_000);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await waiting).toMatchObject({
      ok: false,
      error: { reason: 'control_plane_unavailable', message: expect.stringContaining('version 99') },
    });
  });

  it('says why when the control plane cannot be reached', async () => {
    channel.down = 'unreachable';
    const waiting = source.waitForVersion(0, 500);
    await vi.advanceTimersByTimeAsync(500);
    expect(await waiting).toMatchObject({ ok: false, error: { message: expect.stringContaining('unreachable') } });
  });

  it.each(['revoked', 'clock_skew', 'untrusted_certificate'] as const)('stops after %s', async (reason) => {
    channel.down = reason;
    expect(await source.waitForVersion(0, 3_600_000)).toMatchObject({ ok: false });
  });

  it('ends when the source is stopped', async () => {
    await source.start();
    await settle();
    const waiting = source.waitForVersion(99, 3_600_000);
    await settle();
    await source.stop();
    expect(await waiting).toMatchObject({ ok: false });
  });
});

describe('the snapshot of an earlier run', () => {
  it('is used before the control plane is reached, and keeps ageing', async () => {
    channel.hostBindings = [sampleBinding()];
    channel.version = 4;
    await source.start();
    await settle();
    await reopen();
    channel.down = 'unreachable';
    clock.advance(23 * HOUR_MS);
    await source.start();
    expect(source.status()).toEqual({ version: 4, ageSeconds: 23 * 3600 });
    expect(source.bindings()).toHaveLength(1);
    clock.advance(HOUR_MS);
    expect(reasonNow()).toBe('snapshot_expired');
  });

  it('is confirmed at once if nothing has changed since', async () => {
    await source.start();
    await settle();
    await reopen();
    await source.start();
    await settle();
    expect(link.state).toBe('up');
    expect(channel.polls[0]).toMatchObject({ heldVersion: 1, waitSeconds: 0 });
  });

  it('is fetched again if an earlier version stored it, without reviewed tools', async () => {
    channel.reviewedTools = null;
    await source.start();
    await settle();
    await reopen();
    channel.reviewedTools = new Map([['mcp_a', ['hash']]]);
    await source.start();
    await settle();
    expect(channel.polls.slice(0, 2).map(({ heldVersion }) => heldVersion)).toEqual([null, 1]);
    expect([source.reviewedTools('mcp_a'), source.reviewedTools('mcp_b')]).toEqual([['hash'], []]);
  });

  it('is fetched again if an earlier version stored it, without the set of regions of a binding', async () => {
    channel.hostBindings = [bindingFor(SET_FOR_A_NEWER_SIDECAR)];
    await source.start();
    await settle();
    await reopen();
    channel.hostBindings = [bindingFor('us-east-1,eu-*')];
    await source.start();
    await settle();
    expect(channel.polls.slice(0, 2).map(({ heldVersion }) => heldVersion)).toEqual([null, 1]);
    expect(source.bindings()).toEqual([bindingFor('us-east-1,eu-*')]);
  });

  it('is fetched again if an earlier version stored it, without the secret of a binding with a limit of bytes', async () => {
    const limited = bearerBinding('api.example.com', { bytesPerDay: 500 });
    const credential = { ...limited.credential, path: SECRET_FOR_A_NEWER_SIDECAR };
    channel.hostBindings = [bearerBinding('api.example.com', { credential })];
    await source.start();
    await settle();
    await reopen();
    channel.hostBindings = [limited];
    await source.start();
    await settle();
    expect(channel.polls.slice(0, 2).map(({ heldVersion }) => heldVersion)).toEqual([null, 1]);
    expect(source.bindings()).toEqual([limited]);
  });

  it('is as old as its last saved confirmation', async () => {
    await source.start();
    await settle();
    clock.advance(10 * HOUR_MS);
    change(1);
    await settle();
    await reopen();
    channel.down = 'unreachable';
    await source.start();
    expect(source.status()).toEqual({ version: 1, ageSeconds: 0 });
  });

  it('does not get younger by the confirmation of another version', async () => {
    await source.start();
    await settle();
    await source.stop();
    await file.waitForWrites();
    const path = join(directory, 'snapshot.jws');
    clock.advance(10 * HOUR_MS);
    writeFileSync(path, `${readFileSync(path, 'utf8')}${JSON.stringify({ version: 2, issuedAt: clock.now() })}\n`);
    await reopen();
    channel.down = 'unreachable';
    await source.start();
    expect(source.status()).toEqual({ version: 1, ageSeconds: 10 * 3600 });
  });

  it('still prevents a rollback of the version', async () => {
    channel.version = 4;
    await source.start();
    await settle();
    await reopen();
    channel.version = 3;
    await source.start();
    await settle();
    expect(source.status()?.version).toBe(4);
    expect(link.lastError?.reason).toBe('version_went_back');
  });

  it('can be read only by its owner, and contains no secret', async () => {
    channel.setSecret({ owner: 'personal', path: 'user/demo' }, 'tok-4711-secret', '1');
    await source.start();
    await settle();
    await source.stop();
    await file.waitForWrites();
    const path = join(directory, 'snapshot.jws');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).not.toContain('4711');
  });

  it('is refused with a warning if it is damaged', async () => {
    writeFileSync(join(directory, 'snapshot.jws'), 'half a li', { mode: 0o600 });
    channel.down = 'unreachable';
    await source.start();
    expect(reasonNow()).toBe('control_plane_unavailable');
    expect(warnings.join()).toContain('snapshot.jws');
  });

  it('is refused if other users could have written it', async () => {
    writeFileSync(join(directory, 'snapshot.jws'), '{"version":1}\n', { mode: 0o666 });
    channel.down = 'unreachable';
    await source.start();
    expect(reasonNow()).toBe('control_plane_unavailable');
    expect(warnings.join()).toContain('chmod 600');
  });
});

describe('the connectors of a snapshot', () => {
  it('come first in the policy', async () => {
    channel.connectors = ok([sampleConnector()]);
    await source.start();
    await settle();
    const policy = source.current();
    const request = { method: 'GET', host: 'api.example.com', path: '/items/7' };
    expect(policy.ok && resolve(policy.value, request).kind).toBe('connector');
  });

  it('that cannot be read refuse every request, until a snapshot arrives whose connectors can be read', async () => {
    channel.connectors = err('connector 0 of the snapshot: spec.hosts is empty');
    channel.hostBindings = [sampleBinding()];
    await source.start();
    await settle();
    expect([reasonNow(), source.bindings()]).toEqual(['connector_specs_invalid', []]);
    channel.connectors = ok([]);
    change(2);
    await settle();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reasonNow()).toBe('in force');
  });
});

describe('the MCP servers of a snapshot', () => {
  const known = [{ server: localServer(), authorization: null }];

  it('are unknown before the first snapshot, then follow it', async () => {
    channel.mcpServers = known;
    expect(source.mcpServers()).toBeNull();
    await source.start();
    await settle();
    expect(source.mcpServers()).toEqual(known);
    channel.mcpServers = [];
    change(2);
    await settle();
    expect(source.mcpServers()).toEqual([]);
  });

  it('are kept over a restart while the control plane is down', async () => {
    channel.mcpServers = known;
    await source.start();
    await settle();
    await reopen();
    channel.down = 'unreachable';
    await source.start();
    expect(source.mcpServers()).toEqual(known);
  });

  it('are none once the policy is too old, so that running servers are stopped', async () => {
    channel.mcpServers = known;
    await source.start();
    await settle();
    channel.down = 'unreachable';
    clock.advance(24 * HOUR_MS);
    expect(source.mcpServers()).toEqual([]);
  });

  it('are none while the sidecar is revoked', async () => {
    channel.mcpServers = known;
    await source.start();
    await settle();
    channel.down = 'revoked';
    channel.release();
    await settle();
    expect(source.mcpServers()).toEqual([]);
  });
});

describe('the life of a policy', () => {
  let monotonic: number;

  beforeEach(() => {
    monotonic = 0;
    const monotonicNow = () => monotonic;
    const snapshotMaxAgeSeconds = 24 * 3600;
    source = new SnapshotSource({ channel, link, clock, monotonicNow, file, snapshotMaxAgeSeconds, random: () => 0 });
  });

  it('is not made longer by setting the clock back while the control plane is lost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(hours(0, 20), hours(-40, 20)), { minLength: 1, maxLength: 6 }),
        async (steps) => {
          const lost = new SnapshotSource({
            channel,
            link,
            clock,
            monotonicNow: () => monotonic,
            file: { load: async () => null, keep: () => undefined, waitForWrites: async () => undefined },
            snapshotMaxAgeSeconds: 24 * 3600,
          });
          channel.down = null;
          await lost.waitForVersion(1, 1_000);
          channel.down = 'unreachable';
          const [from, fromMonotonic] = [clock.now(), monotonic];
          for (const [passed, set] of steps) {
            monotonic += passed;
            clock.advance(passed + set);
            const age = Math.max(clock.now() - from, monotonic - fromMonotonic);
            expect(lost.current().ok).toBe(age < 24 * HOUR_MS);
          }
        },
      ),
      { numRuns: 50, seed: 23 },
    );
  });

  it('goes on from each confirmation after the clock was set back', async () => {
    await source.start();
    await settle();
    clock.advance(-50 * HOUR_MS);
    for (let hour = 0; hour < 50; hour += 10) {
      await confirm();
      await vi.advanceTimersByTimeAsync(2_000);
      monotonic += 10 * HOUR_MS;
      clock.advance(10 * HOUR_MS);
      expect(reasonNow()).toBe('in force');
    }
  });

  it('is over for a stored one that is from the future: nobody knows how old it is', async () => {
    await source.start();
    await settle();
    await reopen();
    channel.down = 'unreachable';
    clock.advance(-HOUR_MS);
    await source.start();
    await settle();
    expect(reasonNow()).toBe('snapshot_expired');
  });

  it('tells how far the clock here is behind, as of the last reply', async () => {
    await source.start();
    await settle();
    expect(source.behindMs).toBe(0);
    const behind = new SnapshotSource({
      channel,
      link,
      clock: { now: () => clock.now() - 40_000 },
      file,
      snapshotMaxAgeSeconds: 24 * 3600,
    });
    await behind.waitForVersion(1, 1_000);
    expect(behind.behindMs).toBe(40_000);
  });
});

/** Lets the poll that waits be answered that nothing has changed. */
async function confirm(): Promise<void> {
  channel.release();
  channel.hold();
  await settle();
}

function hours(min: number, max: number): fc.Arbitrary<number> {
  return fc.integer({ min, max }).map((count) => count * HOUR_MS);
}

function bindingFor(region: string): HostBinding {
  return sampleBinding({ injection: { scheme: 'sigv4-resign', accessKeyId: 'AKID', region, service: 's3' } });
}
