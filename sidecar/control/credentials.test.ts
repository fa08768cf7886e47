import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { SHARED_SECRET_MISSING } from '../../shared/model/vault_path.ts';
import { FakeClock } from '../testing/fakes.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { CredentialCache } from './credentials.ts';
import { Link } from './link.ts';

const DEMO: CredentialRef = { owner: 'personal', path: 'user/demo' };
const OTHER: CredentialRef = { owner: 'personal', path: 'user/other' };

let clock: FakeClock;
let link: Link;
let channel: ScriptedChannel;
let cache: CredentialCache;

beforeEach(() => {
  clock = new FakeClock();
  link = new Link();
  channel = new ScriptedChannel(clock, link);
  channel.setSecret(DEMO, 'first', '1');
  channel.setSecret(OTHER, 'other', '1');
  cache = new CredentialCache({ channel, link, clock, credentialCacheSeconds: 300 });
  cache.useVersions([versionOf(DEMO, '1'), versionOf(OTHER, '1')]);
});

function versionOf(ref: CredentialRef, version: string): CredentialRef & { version: string } {
  return { ...ref, version };
}

/** The value, or the refusal's reason. */
async function valueOf(ref: CredentialRef): Promise<string> {
  const resolved = await cache.resolve(ref);
  return resolved.ok ? resolved.value.secret.reveal() : resolved.error.reason;
}

function isHit(ref: CredentialRef): boolean {
  return !(cache.resolve(ref) instanceof Promise);
}

it('the missing secret of a shared binding is for whoever shares it to store', async () => {
  const path = 'shared-bindings/bnd_01m7yjbz4dz98vffmftfxp52e5/credential';
  const resolved = await cache.resolve({ owner: 'enterprise', path });
  expect(resolved).toMatchObject({
    ok: false,
    error: { reason: 'credential_unavailable', message: SHARED_SECRET_MISSING },
  });
});

describe('a credential in the cache', () => {
  it('is returned at once, without a promise, and is the same object each time', async () => {
    expect(await valueOf(DEMO)).toBe('first');
    expect(isHit(DEMO)).toBe(true);
    expect(cache.resolve(DEMO)).toBe(cache.resolve(DEMO));
    expect(channel.asked).toHaveLength(1);
  });

  it('is returned for 300 seconds and not a millisecond longer while the control plane is down', async () => {
    await valueOf(DEMO);
    channel.down = 'unreachable';
    clock.advance(299_999);
    expect(await valueOf(DEMO)).toBe('first');
    clock.advance(1);
    expect(await valueOf(DEMO)).toBe('control_plane_unavailable');
  });

  it('is dropped if a snapshot names another version', async () => {
    await valueOf(DEMO);
    channel.setSecret(DEMO, 'second', '2');
    cache.useVersions([versionOf(DEMO, '2')]);
    expect(await valueOf(DEMO)).toBe('second');
  });

  it('stays if a snapshot names its version', async () => {
    await valueOf(DEMO);
    cache.useVersions([versionOf(DEMO, '1')]);
    expect(isHit(DEMO)).toBe(true);
  });

  it('is dropped if its reference vanishes from the snapshot', async () => {
    await valueOf(DEMO);
    channel.secrets.clear();
    cache.useVersions([]);
    expect(await valueOf(DEMO)).toBe('credential_unavailable');
  });

  it('is dropped with all others when the sidecar is revoked', async () => {
    await valueOf(DEMO);
    await valueOf(OTHER);
    channel.down = 'revoked';
    await channel.sendEvents([]);
    expect(isHit(DEMO)).toBe(false);
    expect(isHit(OTHER)).toBe(false);
    expect(await valueOf(DEMO)).toBe('control_plane_unavailable');
  });

  it('is requested again before it expires, while requests still use the old one', async () => {
    await valueOf(DEMO);
    clock.advance(200_000);
    expect(isHit(DEMO)).toBe(true);
    expect(isHit(DEMO)).toBe(true);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(channel.asked).toHaveLength(2);
    clock.advance(200_000);
    expect(isHit(DEMO)).toBe(true);
  });

  it('survives a failed attempt to renew it, until it expires', async () => {
    await valueOf(DEMO);
    clock.advance(200_000);
    channel.down = 'unreachable';
    void cache.resolve(DEMO);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(await valueOf(DEMO)).toBe('first');
    clock.advance(100_000);
    expect(await valueOf(DEMO)).toBe('control_plane_unavailable');
  });

  it('belongs to its owner: the same path of another owner is another credential', async () => {
    const enterprise: CredentialRef = { owner: 'enterprise', path: DEMO.path };
    expect(await valueOf(DEMO)).toBe('first');
    expect(await valueOf(enterprise)).toBe('credential_unavailable');
  });
});

describe('a miss', () => {
  it('is one call for any number of waiting requests', async () => {
    const values = await Promise.all(Array.from({ length: 50 }, () => valueOf(DEMO)));
    expect(new Set(values)).toEqual(new Set(['first']));
    expect(channel.asked).toEqual([[DEMO]]);
  });

  it('is sent in one call with the other misses of the moment', async () => {
    await Promise.all([valueOf(DEMO), valueOf(OTHER), valueOf(DEMO)]);
    expect(channel.asked).toEqual([[DEMO, OTHER]]);
  });

  it('for a connector is sent in its own call, so that a slow provider delays nothing else', async () => {
    const connectors = ['acme/items', 'acme/other'].map(
      (fqn) => ({ owner: 'personal', path: `connectors/${fqn}` }) as const,
    );
    await Promise.all([...connectors, DEMO, OTHER].map(valueOf));
    expect(channel.asked).toEqual([[connectors[0]], [connectors[1]], [DEMO, OTHER]]);
  });

  it('for a minted secret is sent in its own call too, which says so', async () => {
    const token: CredentialRef = { owner: 'personal', path: 'ci/token' };
    cache.useVersions([
      { ...token, version: '1', minted: true },
      { ...DEMO, version: '1' },
    ]);
    await Promise.all([token, DEMO].map(valueOf));
    expect(channel.asked).toEqual([[{ ...token, minted: true }], [DEMO]]);
  });

  it('is split into as many calls as the contract requires if there are more than 100', async () => {
    const refs = Array.from({ length: 101 }, (_, index) => ({ owner: 'personal', path: `p/${index}` }) as const);
    await Promise.all(refs.map(valueOf));
    expect(channel.asked.map((batch) => batch.length)).toEqual([100, 1]);
  });

  it('is remembered for only a second if the vault has no such secret', async () => {
    channel.secrets.clear();
    expect(await valueOf(DEMO)).toBe('credential_unavailable');
    expect(isHit(DEMO)).toBe(true);
    channel.setSecret(DEMO, 'now there', '1');
    clock.advance(1_000);
    expect(await valueOf(DEMO)).toBe('now there');
  });

  it('is forgotten when a snapshot arrives', async () => {
    channel.secrets.clear();
    await valueOf(DEMO);
    channel.setSecret(DEMO, 'now there', '1');
    cache.useVersions([versionOf(DEMO, '1')]);
    expect(await valueOf(DEMO)).toBe('now there');
  });

  it('is forgotten when the control plane is back', async () => {
    channel.down = 'unreachable';
    expect(await valueOf(DEMO)).toBe('control_plane_unavailable');
    channel.down = null;
    await channel.sendEvents([]);
    expect(await valueOf(DEMO)).toBe('first');
  });

  it('names the reference and the fix, and no value', async () => {
    channel.secrets.delete('personal user/demo');
    const resolved = await cache.resolve(DEMO);
    expect(!resolved.ok && resolved.error.message).toContain('vault://user/demo');
  });
});

describe('a reply that a snapshot overtakes', () => {
  it('is not cached if it has the old version', async () => {
    channel.hold();
    const asked = valueOf(DEMO);
    await new Promise(setImmediate);
    channel.setSecret(DEMO, 'second', '2');
    cache.useVersions([versionOf(DEMO, '2')]);
    channel.release();
    await asked;
    expect(await valueOf(DEMO)).toBe('second');
  });

  it('is not cached if the sidecar was revoked in the meantime', async () => {
    channel.hold();
    const asked = valueOf(DEMO);
    await new Promise(setImmediate);
    cache.dropAll();
    channel.release();
    await asked;
    expect(isHit(DEMO)).toBe(false);
  });

  it('is cached if it has the version in the snapshot', async () => {
    channel.setSecret(DEMO, 'second', '2');
    channel.hold();
    const asked = valueOf(DEMO);
    await new Promise(setImmediate);
    cache.useVersions([versionOf(DEMO, '2')]);
    channel.release();
    expect(await asked).toBe('second');
    expect(isHit(DEMO)).toBe(true);
  });
});

describe('the end of a value', () => {
  it.each([
    ['the wall clock is set back', -3_600_000, 120_000],
    ['the monotonic clock stood still while the machine slept', 120_000, 0],
  ])('is not moved when %s', async (_, wallMs, monotonicMs) => {
    let monotonic = 1_000;
    const monotonicNow = () => monotonic;
    cache = new CredentialCache({ channel, link, clock, credentialCacheSeconds: 300, monotonicNow });
    cache.useVersions([versionOf(DEMO, '1')]);
    channel.setSecret(DEMO, 'token', '1', clock.now() + 120_000);
    expect([await valueOf(DEMO), isHit(DEMO)]).toEqual(['token', true]);
    clock.advance(wallMs);
    monotonic += monotonicMs;
    expect(isHit(DEMO)).toBe(false);
  });
});

describe('an access token', () => {
  it('is returned until it expires and never after, even if no other one is available', async () => {
    channel.setSecret(DEMO, 'token', '1', clock.now() + 120_000);
    expect(await valueOf(DEMO)).toBe('token');
    channel.down = 'unreachable';
    clock.advance(119_999);
    expect(await valueOf(DEMO)).toBe('token');
    clock.advance(1);
    expect(await valueOf(DEMO)).toBe('control_plane_unavailable');
  });

  it('is requested again before it expires, while the old one is still returned', async () => {
    channel.setSecret(DEMO, 'token', '1', clock.now() + 120_000);
    await valueOf(DEMO);
    clock.advance(69_999);
    expect(await valueOf(DEMO)).toBe('token');
    expect(channel.asked).toHaveLength(1);
    clock.advance(1);
    channel.setSecret(DEMO, 'next', '1', clock.now() + 3_600_000);
    expect(await valueOf(DEMO)).toBe('token');
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect([channel.asked.length, await valueOf(DEMO)]).toEqual([2, 'next']);
  });

  it('is refused if it arrives expired', async () => {
    channel.setSecret(DEMO, 'token', '1', clock.now());
    expect(await valueOf(DEMO)).toBe('credential_unavailable');
  });

  it('that has to be authorised again says so, and replaces the one before it', async () => {
    channel.setSecret(DEMO, 'token', '1', clock.now() + 120_000);
    await valueOf(DEMO);
    channel.secrets.clear();
    const message = 'Authorise it at https://control.example.test/connectors/con_1';
    channel.unavailable = [{ ref: DEMO, refusal: { reason: 'reauthorisation_required', message } }];
    cache.useVersions([versionOf(DEMO, '2')]);
    expect(await cache.resolve(DEMO)).toEqual({ ok: false, error: { reason: 'reauthorisation_required', message } });
  });

  it('for a connector without one names the command that stores it', async () => {
    const resolved = await cache.resolve({ owner: 'personal', path: 'connectors/acme/items' });
    expect(resolved.ok ? '' : resolved.error.message).toContain('svc connector credential set acme/items');
  });
});
