import { describe, expect, it } from 'vitest';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { PolicySource } from '../ports.ts';
import { FakeClock, FakePolicySource } from '../testing/fakes.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { ScriptedChannel } from '../testing/scripted_channel.ts';
import { Link } from './link.ts';
import { SnapshotSource } from './snapshot.ts';

interface Subject {
  readonly source: PolicySource;
  /** Sets the control plane's bindings. */
  change(bindings: readonly HostBinding[]): Promise<void>;
  expire(): void;
  stop(): Promise<void>;
}

function fake(): Promise<Subject> {
  const source = new FakePolicySource();
  return Promise.resolve({
    source,
    change: (bindings) => Promise.resolve(source.use(bindings)),
    expire: () => source.refuse('snapshot_expired'),
    stop: () => Promise.resolve(),
  });
}

async function snapshot(): Promise<Subject> {
  const clock = new FakeClock();
  const link = new Link();
  const channel = new ScriptedChannel(clock, link);
  const file = { load: () => Promise.resolve(null), keep: () => undefined, waitForWrites: () => Promise.resolve() };
  const source = new SnapshotSource({ channel, link, clock, file, snapshotMaxAgeSeconds: 60 });
  await source.waitForVersion(1, 60_000);
  return {
    source,
    change: async (bindings) => {
      channel.version += 1;
      channel.hostBindings = bindings;
      await source.waitForVersion(channel.version, 60_000);
    },
    expire: () => clock.advance(60_000),
    stop: () => source.stop(),
  };
}

describe.each([
  ['the fake', fake],
  ['the snapshot source', snapshot],
])('a policy source: %s', (_name, make) => {
  it('returns the policy of the control plane', async () => {
    const subject = await make();
    await subject.change([sampleBinding({ host: 'a.example.test' })]);
    const current = subject.source.current();
    expect(current.ok && current.value.bindingsFor('a.example.test')).toHaveLength(1);
    expect(current.ok && current.value.bindingsFor('b.example.test')).toEqual([]);
    await subject.stop();
  });

  it('returns the same policy object until it changes, so derived data can be cached', async () => {
    const subject = await make();
    const before = subject.source.current();
    expect(subject.source.current()).toBe(before);
    await subject.change([sampleBinding()]);
    expect(subject.source.current()).not.toBe(before);
    await subject.stop();
  });

  it('refuses with snapshot_expired if the policy is too old', async () => {
    const subject = await make();
    subject.expire();
    expect(subject.source.current()).toMatchObject({ ok: false, error: { reason: 'snapshot_expired' } });
    await subject.stop();
  });
});
