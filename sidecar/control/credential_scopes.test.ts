import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { SecretScope } from '../../shared/wire/sources/narrowing.ts';
import { FakeClock } from '../testing/fakes.ts';
import { channelFailure } from './channel_failure.ts';
import { CredentialScopes, type ScopedSession } from './credential_scopes.ts';
import { CredentialCache } from './credentials.ts';
import type { AskedCredential, ControlChannel } from './control_channel.ts';
import { Link } from './link.ts';

const REF: CredentialRef = { owner: 'personal', path: 'ci/github' };
const OTHER: CredentialRef = { owner: 'personal', path: 'user/other' };
const LIFE_MS = 120_000;
const only = (repository: string): SecretScope => ({ path: REF.path, narrowing: { repositories: [repository] } });

/** A session of a test; `end` does what the end of a session does. */
class TestSession implements ScopedSession {
  readonly scopes: readonly SecretScope[];
  #close: (() => void)[] = [];

  constructor(scopes: readonly SecretScope[]) {
    this.scopes = scopes;
  }

  onEnd(close: () => void): void {
    this.#close.push(close);
  }

  end(): void {
    for (const close of this.#close) close();
  }
}

let clock: FakeClock;
let link: Link;
let asked: readonly AskedCredential[][];
let isDown: boolean;
let version: string;
let live: Map<string, TestSession>;
let shared: CredentialCache;
let scopes: CredentialScopes;
let monotonic: number;

/** It issues a numbered value for what is asked, and says so in it. */
const channel: Pick<ControlChannel, 'credentials'> = {
  credentials: (refs) => {
    asked = [...asked, [...refs]];
    if (isDown) return Promise.resolve({ ok: false, error: channelFailure('unreachable', 'it is down') });
    const released = refs.map(({ owner, path, narrowing }) => {
      const what = narrowing === undefined ? 'wide' : JSON.stringify(narrowing);
      const secret = new Secret(`${what} ${asked.length}`);
      return { ref: { owner, path }, credential: { secret, version, expiresAt: clock.now() + LIFE_MS } };
    });
    return Promise.resolve(ok({ released, missing: [], unavailable: [] }));
  },
};

function useVersions(...refs: readonly CredentialRef[]): void {
  const versions = refs.map((ref) => ({ ...ref, version, minted: true }));
  shared.useVersions(versions);
  scopes.useVersions(versions);
}

beforeEach(() => {
  [clock, link, asked, isDown, version, monotonic] = [new FakeClock(), new Link(), [], false, '1', 0];
  live = new Map([
    ['narrow', new TestSession([only('website')])],
    ['narrower', new TestSession([only('docs')])],
    ['wide', new TestSession([])],
  ]);
  const options = { channel, link, clock, credentialCacheSeconds: 300, monotonicNow: () => monotonic };
  shared = new CredentialCache(options);
  scopes = new CredentialScopes({ ...options, shared });
  scopes.useSessions((id) => live.get(id) ?? null);
  useVersions(REF, OTHER);
});

async function valueOf(sessionId: string | null, ref = REF): Promise<string> {
  const resolved = await scopes.of(sessionId).resolve(ref);
  return resolved.ok ? resolved.value.secret.reveal() : resolved.error.reason;
}

function end(sessionId: string): void {
  const session = live.get(sessionId);
  live.delete(sessionId);
  session?.end();
}

describe('a session that narrows a secret', () => {
  it('is given a value of its own, also after another session was given the wide one', async () => {
    expect(await valueOf('wide')).toBe('wide 1');
    expect(await valueOf('narrow')).toBe('{"repositories":["website"]} 2');
    expect(await valueOf('narrower')).toBe('{"repositories":["docs"]} 3');
    expect(await Promise.all(['wide', 'narrow', 'narrower', null].map((id) => valueOf(id)))).toEqual([
      'wide 1',
      '{"repositories":["website"]} 2',
      '{"repositories":["docs"]} 3',
      'wide 1',
    ]);
  });

  it('narrows nothing else', async () => {
    expect(await valueOf('narrow', OTHER)).toBe('wide 1');
  });

  it('narrows the enterprise’s secret of the same path as well', async () => {
    const theirs: CredentialRef = { owner: 'enterprise', path: REF.path };
    useVersions(REF, theirs);
    expect(await valueOf('narrow', theirs)).toContain('website');
  });

  it('has one value minted for 1,000 requests at once', async () => {
    const values = await Promise.all(Array.from({ length: 1_000 }, () => valueOf('narrow')));
    expect([new Set(values).size, asked.length]).toEqual([1, 1]);
  });

  it('never gets the wide value while the control plane is down', async () => {
    await valueOf('wide');
    isDown = true;
    expect(await valueOf('narrow')).toBe('control_plane_unavailable');
  });

  it('gets nothing at its end, and its value goes', async () => {
    await valueOf('narrow');
    end('narrow');
    expect(await valueOf('narrow')).toBe('credential_unavailable');
    live.set('narrow', new TestSession([only('website')]));
    expect(await valueOf('narrow')).toBe('{"repositories":["website"]} 2');
  });

  it('gets another value for a changed source, and none for one that is gone', async () => {
    await valueOf('narrow');
    version = '2';
    useVersions(REF);
    expect(await valueOf('narrow')).toBe('{"repositories":["website"]} 2');
    useVersions(OTHER);
    isDown = true;
    expect(await valueOf('narrow')).toBe('control_plane_unavailable');
  });

  it('is refused at once when the sidecar is revoked', async () => {
    await valueOf('narrow');
    isDown = true;
    link.markDown(channelFailure('revoked', 'it was revoked'));
    expect(await valueOf('narrow')).toBe('control_plane_unavailable');
  });

  it('asks again as soon as the control plane is back', async () => {
    isDown = true;
    await valueOf('narrow');
    isDown = false;
    link.markUp();
    expect(await valueOf('narrow')).toContain('website');
  });
});

it('a session that is not known is given nothing', async () => {
  expect(await valueOf('other')).toBe('credential_unavailable');
  const fresh = new CredentialScopes({ shared, channel, link, clock, credentialCacheSeconds: 300 });
  expect((await fresh.of('wide').resolve(REF)).ok).toBe(false);
});

it('no value outlives its end, by either clock, whatever the other one does', async () => {
  const step = fc.record({
    wall: fc.integer({ min: -60_000, max: 90_000 }),
    steady: fc.integer({ min: 0, max: 90_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      live.set('narrow', new TestSession([only('website')]));
      scopes = new CredentialScopes({
        shared,
        channel,
        link,
        clock,
        credentialCacheSeconds: 300,
        monotonicNow: () => monotonic,
      });
      scopes.useSessions((id) => live.get(id) ?? null);
      isDown = false;
      useVersions(REF);
      const first = await valueOf('narrow');
      const [until, untilSteady] = [clock.now() + LIFE_MS, monotonic + LIFE_MS];
      isDown = true;
      for (const { wall, steady } of steps) {
        clock.advance(wall);
        monotonic += steady;
        const isOver = clock.now() >= until || monotonic >= untilSteady;
        const given = await valueOf('narrow');
        expect(isOver && given === first).toBe(false);
      }
    }),
    { numRuns: 50 },
  );
});
