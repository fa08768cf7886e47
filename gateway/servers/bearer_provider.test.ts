import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bearerOf } from './bearer_provider.ts';
import type { FilledBearer } from './current_mask.ts';

const START_MS = Date.parse('2026-01-02T03:04:05.678Z');

/** A machine with a wall clock that can be set and a monotonic one, and a sidecar that gives tokens. */
class Machine {
  wall = START_MS;
  monotonic = 0;
  /** Of the tokens that the sidecar gives; null: it gives none. */
  lifeMs: number | null = 60_000;
  /** How long it takes to give one. */
  takesMs = 0;
  readonly ends = new Map<string, { readonly wall: number; readonly monotonic: number }>();

  issue(): FilledBearer | null {
    if (this.lifeMs === null) return null;
    const text = `token-${this.ends.size + 1}`;
    this.ends.set(text, { wall: this.wall + this.lifeMs, monotonic: this.monotonic + this.lifeMs });
    return { text, expiresAt: this.wall + this.lifeMs };
  }

  pass(ms: number): void {
    this.wall += ms;
    this.monotonic += ms;
  }

  open(): ReturnType<typeof bearerOf> {
    const first = this.issue();
    if (first === null) throw new Error('the sidecar gives no token');
    return bearerOf(first, {
      clock: { now: () => this.wall },
      monotonicNow: () => this.monotonic,
      refresh: async () => {
        const issued = this.issue();
        this.wall += this.takesMs;
        return issued;
      },
    });
  }

  hasEnded(text: string): boolean {
    const end = this.ends.get(text);
    return end === undefined || this.wall >= end.wall || this.monotonic >= end.monotonic;
  }
}

const step = fc.record({
  pass: fc.integer({ min: 0, max: 90_000 }),
  wall: fc.constantFrom(0, 0, -600_000, 600_000),
  lifeMs: fc.option(fc.constantFrom(5_000, 60_000, 300_000)),
  takesMs: fc.constantFrom(0, 0, 20_000),
  kind: fc.constantFrom('token', 'token', 'newerThan'),
});

describe('the access token of a remote server', () => {
  it('is never given out past its end by either clock, whatever the sidecar gives', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const machine = new Machine();
        const bearer = machine.open();
        for (const { pass, wall, lifeMs, takesMs, kind } of steps) {
          machine.pass(pass);
          machine.wall += wall;
          Object.assign(machine, { lifeMs, takesMs });
          const given = kind === 'token' ? await bearer.token() : await bearer.newerThan('token-1');
          expect(typeof given === 'string' && machine.hasEnded(given)).toBe(false);
        }
      }),
      { numRuns: 200, seed: 23 },
    );
  });

  it('is renewed before its end, and is gone when the sidecar gives no other', async () => {
    const machine = new Machine();
    const bearer = machine.open();
    expect(await bearer.token()).toBe('token-1');
    machine.pass(31_000);
    expect(await bearer.token()).toBe('token-2');
    machine.lifeMs = null;
    machine.pass(31_000);
    expect(await bearer.token()).toBeUndefined();
  });
});
