import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CredentialRef } from '../../shared/model/host_binding.ts';
import { type Enrolment, enrol, type Issued, MintingControlPlane } from '../testing/minting_control_plane.ts';
import { lostByBoth, TwoClocks } from '../testing/two_clocks.ts';
import type { ReleasedCredential } from '../ports.ts';
import { channelFailure } from './channel_failure.ts';
import { createControlChannel } from './channel.ts';
import { CredentialCache } from './credentials.ts';
import { Link } from './link.ts';

/** The cache of credentials over the real channel, with a control plane that signs and seals as the real one. */

const REF: CredentialRef = { owner: 'personal', path: 'ci/token' };
/** The same sequences in each run. */
const RUNS = { numRuns: 200, seed: 23 };

let enrolment: Enrolment;

beforeAll(async () => {
  enrolment = await enrol();
});

/** What happens to a machine, its control plane and a secret. What is `learned` has also arrived with the policy. */
type Happening =
  | { readonly kind: 'pass' | 'sleep' | 'set_clock'; readonly ms: number }
  | { readonly kind: 'lose' | 'return' | 'replace' | 'remove' | 'revoke'; readonly learned: boolean };

/** Often round numbers, so that ends and happenings meet. */
const length = fc.oneof(fc.constantFrom(1_000, 5_000, 20_000, 50_000), fc.integer({ min: 0, max: 90_000 }));
const time = (kind: 'pass' | 'sleep') => fc.record({ kind: fc.constant(kind), ms: length });
const clockSetBy = (mostMs: number) =>
  fc.record({ kind: fc.constant('set_clock' as const), ms: fc.integer({ min: -mostMs, max: mostMs }) });
const change = (...kinds: readonly Extract<Happening, { readonly learned: boolean }>['kind'][]) =>
  fc.record({ kind: fc.constantFrom(...kinds), learned: fc.boolean() });

const passes = { weight: 5, arbitrary: time('pass') };
/** A control plane refuses calls of a clock that is a minute wrong. */
const accepted = { weight: 3, arbitrary: clockSetBy(59_000) };
const ofTime = fc.oneof(
  passes,
  { weight: 2, arbitrary: time('sleep') },
  accepted,
  { weight: 1, arbitrary: clockSetBy(600_000) },
  { weight: 1, arbitrary: change('lose', 'return', 'return') },
);
const ofPolicy = fc.oneof(passes, accepted, {
  weight: 5,
  arbitrary: change('replace', 'replace', 'remove', 'lose', 'return', 'revoke'),
});

/** Some things happen, then a request asks; more happen on the way there and back of its calls. */
const storyOf = (happening: fc.Arbitrary<Happening>) => {
  const few = fc.array(happening, { maxLength: 2 });
  const way = fc.record({ there: few, back: few });
  const step = fc.record({ before: few, ways: fc.array(way, { minLength: 1, maxLength: 4 }) });
  const lifeMs = fc.oneof(fc.constantFrom(5_000, 20_000, 60_000), fc.integer({ min: 2_000, max: 400_000 }));
  return fc.record({ lifeMs, steps: fc.array(step, { minLength: 1, maxLength: 8 }) });
};
interface Story {
  readonly lifeMs: number;
  readonly steps: readonly {
    readonly before: readonly Happening[];
    readonly ways: readonly { readonly there: readonly Happening[]; readonly back: readonly Happening[] }[];
  }[];
}

class World {
  readonly clocks = new TwoClocks();
  readonly plane = new MintingControlPlane(this.clocks, enrolment);
  readonly cache: CredentialCache;
  readonly link = new Link();
  /** Older versions are known to be gone. */
  leastVersion = 0;
  isKnownRevoked = false;
  #newest = 1;

  constructor(lifeMs: number) {
    this.plane.lifeMs = lifeMs;
    const { clocks, plane, link } = this;
    const channel = createControlChannel({ identity: enrolment.identity, http: plane, clock: clocks, link });
    const { monotonicNow } = clocks;
    this.cache = new CredentialCache({ channel, link, clock: clocks, monotonicNow, credentialCacheSeconds: 300 });
    link.onRevoked(() => (this.isKnownRevoked = true));
    this.#learn();
  }

  happen(what: Happening): void {
    const { clocks, plane } = this;
    if (what.kind === 'pass') clocks.pass(what.ms);
    else if (what.kind === 'sleep') clocks.sleep(what.ms);
    else if (what.kind === 'set_clock') clocks.set(what.ms);
    else if ('learned' in what) {
      if (what.kind === 'replace') plane.version = this.#newest += 1;
      else if (what.kind === 'remove') plane.version = null;
      else if (what.kind === 'revoke') plane.hasRevoked = true;
      else plane.isDown = what.kind === 'lose';
      if (what.learned) this.#learn();
    }
  }

  /** The poll of the policy is answered. */
  #learn(): void {
    const { version, isDown, hasRevoked } = this.plane;
    if (isDown) return;
    if (hasRevoked) {
      this.link.markDown(channelFailure('revoked', 'the poll of the policy said so'));
      return;
    }
    this.cache.useVersions(version === null ? [] : [{ ...REF, version: String(version), minted: true }]);
    this.leastVersion = version ?? this.#newest + 1;
  }
}

interface Handed {
  readonly credential: ReleasedCredential;
  readonly issued: Issued;
}

/** Milliseconds by which a value has outlived its end, beyond what no clock could show. */
function outlived({ clocks }: World, { issued }: Handed): number {
  const { moment } = clocks;
  return moment.trueMs - issued.endsAt - lostByBoth(issued.asked, moment);
}

/** Asks in each step; `check` gets what was handed out. */
async function tell({ lifeMs, steps }: Story, check: (world: World, handed: Handed) => void): Promise<void> {
  const world = new World(lifeMs);
  const all: Handed[] = [];
  const ask = async (): Promise<void> => {
    const resolved = await world.cache.resolve(REF);
    if (!resolved.ok) return;
    const handed = { credential: resolved.value, issued: world.plane.issued(resolved.value.secret.reveal()) };
    all.push(handed);
    check(world, handed);
  };
  for (const { before, ways } of steps) {
    before.forEach((what) => world.happen(what));
    // A request that has waited with its value asks whether it has ended.
    for (const handed of all) {
      expect(outlived(world, handed) >= 0 && handed.credential.hasEnded?.() !== true).toBe(false);
    }
    const mapped = ways.map(({ there, back }) => ({
      there: () => there.forEach((what) => world.happen(what)),
      back: () => back.forEach((what) => world.happen(what)),
    }));
    world.plane.onTheWay.splice(0, Infinity, ...mapped);
    await ask();
    // A reply that was on its way when the revocation became known does not end it.
    expect(world.isKnownRevoked && world.link.state !== 'revoked').toBe(false);
  }
}

describe('whatever the clocks, the machine and the control plane do', () => {
  it('no value is handed out at or past its end', async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(storyOf(ofTime), async (told) => {
        await tell(told, (world, handed) => {
          count += 1;
          expect(outlived(world, handed)).toBeLessThan(0);
        });
      }),
      RUNS,
    );
    expect(count).toBeGreaterThan(RUNS.numRuns);
  });

  it('nothing is handed out once a revocation, a removal or a new value is known', async () => {
    await fc.assert(
      fc.asyncProperty(storyOf(ofPolicy), async (told) => {
        await tell(told, ({ isKnownRevoked, leastVersion }, { issued }) => {
          expect(isKnownRevoked).toBe(false);
          expect(issued.version).toBeGreaterThanOrEqual(leastVersion);
        });
      }),
      RUNS,
    );
  });
});
