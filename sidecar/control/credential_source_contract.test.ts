import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import type { CredentialSource } from '../ports.ts';
import { FakeClock, FakeCredentialSource } from '../testing/fakes.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { CredentialCache } from './credentials.ts';
import { Link } from './link.ts';

const DEMO: CredentialRef = { owner: 'personal', path: 'user/demo' };

interface Subject {
  readonly source: CredentialSource;
  store(value: string, version: string): void;
  remove(): void;
  goDown(): void;
}

function fake(): Subject {
  const source = new FakeCredentialSource();
  return {
    source,
    store: (value, version) => source.set(DEMO, value, version),
    remove: () => source.delete(DEMO),
    goDown: () => source.refuse('control_plane_unavailable'),
  };
}

function cache(): Subject {
  const clock = new FakeClock();
  const link = new Link();
  const channel = new ScriptedChannel(clock, link);
  const source = new CredentialCache({ channel, link, clock, credentialCacheSeconds: 300 });
  return {
    source,
    store: (value, version) => {
      channel.setSecret(DEMO, value, version);
      source.useVersions([{ ...DEMO, version }]);
    },
    remove: () => {
      channel.secrets.clear();
      source.useVersions([]);
    },
    goDown: () => {
      channel.down = 'unreachable';
    },
  };
}

describe.each([
  ['the fake', fake],
  ['the cache', cache],
])('a credential source: %s', (_name, make) => {
  let subject: Subject;

  beforeEach(() => {
    subject = make();
  });

  it('returns the stored value with its version', async () => {
    subject.store('tok', '1');
    const resolved = await subject.source.resolve(DEMO);
    expect(resolved.ok && [resolved.value.secret.reveal(), resolved.value.version]).toEqual(['tok', '1']);
  });

  it('returns another version with another value', async () => {
    subject.store('tok', '1');
    await subject.source.resolve(DEMO);
    subject.store('new', '2');
    const resolved = await subject.source.resolve(DEMO);
    expect(resolved.ok && [resolved.value.secret.reveal(), resolved.value.version]).toEqual(['new', '2']);
  });

  it('answers a second request without a promise', async () => {
    subject.store('tok', '1');
    await subject.source.resolve(DEMO);
    expect(subject.source.resolve(DEMO)).toMatchObject({ ok: true });
  });

  it('refuses what is not stored, or no longer stored, with credential_unavailable', async () => {
    expect(await subject.source.resolve(DEMO)).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable' },
    });
    subject.store('tok', '1');
    subject.remove();
    expect(await subject.source.resolve(DEMO)).toMatchObject({
      ok: false,
      error: { reason: 'credential_unavailable' },
    });
  });

  it('refuses with control_plane_unavailable if it cannot ask', async () => {
    subject.goDown();
    expect(await subject.source.resolve(DEMO)).toMatchObject({
      ok: false,
      error: { reason: 'control_plane_unavailable' },
    });
  });

  it('never rejects and never prints a value', async () => {
    subject.store('tok-4711-secret', '1');
    const resolved = await subject.source.resolve(DEMO);
    expect(JSON.stringify(resolved)).not.toContain('4711');
  });
});
