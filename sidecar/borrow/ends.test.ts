import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkCommand } from '../../machine/borrow/check_files.ts';
import type { CredentialUse } from '../../shared/borrow/borrow_grant.ts';
import type { BorrowConsent } from '../../shared/borrow/borrow_calls.ts';
import { err, ok } from '../../shared/model/result.ts';
import { lostByBoth, type Moment, TwoClocks } from '../testing/two_clocks.ts';
import { BorrowedCredentials } from './borrowed_credentials.ts';

const REF = { owner: 'personal', path: 'user/github' } as const;
const USE: CredentialUse = { host: 'api.github.com', scheme: 'bearer', place: null, effect: 'read' };
const AS = { uid: process.getuid?.() ?? 0 };
const LONGEST_MS = 300_000;

let home: string;
let consent: BorrowConsent;

beforeEach(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'svc-borrow-ends-')));
  const program = join(home, 'tool');
  writeFileSync(program, 'first', { mode: 0o700 });
  const files = await checkCommand(program, [], AS);
  if (!files.ok) throw new Error(files.error);
  const output = { form: 'json', value: 'token', expires: 'expires' } as const;
  const where = { hosts: ['api.github.com'], scheme: 'bearer', effect: 'read' } as const;
  const grant = {
    ...REF,
    program,
    args: [],
    env: {},
    output,
    files: [...files.value],
    ...where,
    hosts: [...where.hosts],
  };
  consent = {
    grant,
    hash: 'first',
    sidecar_id: 'sdc_01m7yjbz4dz98vffmftfxp52e5',
    consented_at: '2026-01-02T03:04:05.678Z',
  };
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

type Happening =
  | { readonly kind: 'pass' | 'sleep' | 'set_clock'; readonly ms: number }
  | { readonly kind: 'poll' | 'withdraw' | 'consent' | 'change' | 'fail' };

const length = fc.oneof(fc.constantFrom(1_000, 10_000, 60_000), fc.integer({ min: 0, max: 120_000 }));
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: length }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sleep' as const), ms: length }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('set_clock' as const), ms: fc.integer({ min: -120_000, max: 120_000 }) }),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('poll' as const, 'withdraw' as const, 'consent' as const, 'change' as const, 'fail' as const)
      .map((kind) => ({ kind })),
  },
);
const few = fc.array(happening, { maxLength: 3 });
const step = fc.record({
  before: few,
  during: few,
  lifeMs: fc.constantFrom(5_000, 30_000, 200_000, 3_600_000),
  /** The program had the value already when it was started. */
  isKept: fc.boolean(),
});

/** The value ends while its program runs, and the clock is set back, so that it does not look so. */
const ENDED_ON_THE_WAY = {
  before: [],
  during: [
    { kind: 'pass' as const, ms: 10_000 },
    { kind: 'set_clock' as const, ms: -50_000 },
  ],
  lifeMs: 5_000 as const,
  isKept: true,
};

/** The clock is behind, which the sidecar has learned. */
const BEHIND = [
  {
    before: [{ kind: 'set_clock' as const, ms: -50_000 }, { kind: 'poll' as const }],
    during: [],
    lifeMs: 30_000 as const,
    isKept: false,
  },
  { before: [{ kind: 'pass' as const, ms: 40_000 }], during: [], lifeMs: 30_000 as const, isKept: false },
];

interface Given {
  readonly endsAt: number;
  readonly asked: Moment;
  readonly behindMs: number;
  readonly consent: string;
  readonly version: number;
}

/** A machine with a consent, and a program that states the end by its provider's clock. */
class World {
  readonly clocks = new TwoClocks();
  readonly given = new Map<string, Given>();
  /** The hash of the consent; null: there is none. */
  consent: string | null = 'first';
  version = 1;
  behindMs = 0;
  during: readonly Happening[] = [];
  lifeMs = 0;
  isKept = false;
  readonly credentials: BorrowedCredentials;
  #fails = false;
  #consents = 1;

  constructor() {
    const { clocks } = this;
    this.credentials = new BorrowedCredentials({
      consents: { find: () => (this.consent === null ? null : { ...consent, hash: this.consent }) },
      clock: clocks,
      monotonicNow: clocks.monotonicNow,
      behindMs: () => this.behindMs,
      credentialCacheSeconds: 300,
      environment: () => ({}),
      runsAs: AS,
      record: () => 'evt_00000000000000000000000000',
      run: () => this.#run(),
    });
    this.#learn();
  }

  happen(what: Happening): void {
    const { clocks } = this;
    if (what.kind === 'pass') clocks.pass(what.ms);
    else if (what.kind === 'sleep') clocks.sleep(what.ms);
    else if (what.kind === 'set_clock') clocks.set(what.ms);
    else if (what.kind === 'withdraw') this.consent = null;
    else if (what.kind === 'consent') this.consent = `consent ${(this.#consents += 1)}`;
    else if (what.kind === 'fail') this.#fails = !this.#fails;
    else {
      if (what.kind === 'change') this.version += 1;
      this.#learn();
    }
  }

  /** A poll of the policy: the versions, and how far the clock is behind. */
  #learn(): void {
    this.behindMs = Math.max(0, -this.clocks.moment.aheadMs);
    this.credentials.useVersions([{ ...REF, version: String(this.version) }]);
  }

  async #run() {
    const asked = this.clocks.moment;
    const { consent: hash, version } = this;
    this.during.forEach((what) => this.happen(what));
    if (this.#fails || hash === null) return err({ message: 'ended with status 1', stderr: '' });
    const token = `planted-${this.given.size + 1}-value`;
    const endsAt = (this.isKept ? asked : this.clocks.moment).trueMs + this.lifeMs;
    this.given.set(token, { endsAt, asked, behindMs: this.behindMs, consent: hash, version });
    return ok(Buffer.from(JSON.stringify({ token, expires: new Date(endsAt).toISOString() })));
  }
}

test('no value outlives its end or five minutes, nor its consent or record, whatever the clocks do', async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const world = new World();
      for (const { before, during, lifeMs, isKept } of steps) {
        before.forEach((what) => world.happen(what));
        Object.assign(world, { during, lifeMs, isKept });
        const resolved = await world.credentials.resolve(REF, USE);
        if (!resolved.ok) continue;
        count += 1;
        const given = world.given.get(resolved.value.secret.reveal());
        const { moment } = world.clocks;
        const { asked, endsAt } = given ?? { asked: moment, endsAt: 0 };
        const lost = lostByBoth(asked, moment);
        // A clock that nobody knew to be behind makes the end that the program states later here.
        const unknown = Math.max(0, -Math.max(asked.aheadMs, moment.aheadMs) - (given?.behindMs ?? 0));
        expect(moment.trueMs - endsAt).toBeLessThan(lost + unknown);
        expect(moment.trueMs - asked.trueMs).toBeLessThan(LONGEST_MS + lost);
        expect([given?.consent, given?.version]).toEqual([world.consent, world.version]);
      }
    }),
    { numRuns: 200, seed: 23, examples: [[[ENDED_ON_THE_WAY]], [BEHIND]] },
  );
  expect(count).toBeGreaterThan(200);
});
