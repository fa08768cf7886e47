import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readClocks } from '../../shared/model/clock.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { ReleasedValues } from '../gateway_ports.ts';
import { ValueEnds } from './value_ends.ts';

/** A machine with two clocks, and a sidecar that releases one value after the other. */
function startedWith(lifeMs: number | null) {
  const at = { wall: 1_000_000, monotonic: 50 };
  const next: Result<ReleasedValues, string>[] = [];
  const released = (text: string, life: number | null): ReleasedValues => ({
    values: new Map([['ci/token', new Secret(text)]]),
    endsAt: life === null ? null : at.wall + life,
    bearer: null,
  });
  let asked = 0;
  const ends = new ValueEnds(
    released('first', lifeMs),
    { ...at },
    {
      clock: { now: () => at.wall },
      monotonicNow: () => at.monotonic,
      release: () => {
        asked += 1;
        return Promise.resolve(next.shift() ?? err('down'));
      },
    },
  );
  return {
    ends,
    release: (text: string, life: number | null) => void next.push(ok(released(text, life))),
    pass: (ms: number): void => {
      at.wall += ms;
      at.monotonic += ms;
    },
    setBack: (ms: number): void => {
      at.wall -= ms;
    },
    state: () => [ends.isRenewalDue, ends.hasEnded],
    asked: () => asked,
  };
}

describe('the values of a server', () => {
  test('are due half a minute before the first of them ends, and end by each clock', () => {
    const { state, pass, setBack } = startedWith(60_000);
    expect(state()).toEqual([false, false]);
    pass(30_000);
    expect(state()).toEqual([true, false]);
    setBack(3_600_000);
    expect(state()).toEqual([true, false]);
    pass(30_000);
    expect(state()).toEqual([true, true]);
  });

  test('that do not end are never due', () => {
    const { state, pass } = startedWith(null);
    pass(10 ** 12);
    expect(state()).toEqual([false, false]);
  });

  test('that stayed the same last to their new end', async () => {
    const { ends, release, pass, state } = startedWith(60_000);
    pass(40_000);
    release('first', 300_000);
    expect(await ends.renew()).toBe('same');
    expect(state()).toEqual([false, false]);
    pass(299_000);
    expect(state()).toEqual([true, false]);
  });

  test('are asked for once by concurrent requests, and again after a moment while the next ones are not there', async () => {
    const { ends, release, pass, state, asked } = startedWith(60_000);
    pass(40_000);
    release('first', 20_000);
    expect(await Promise.all([ends.renew(), ends.renew()])).toEqual(['same', 'same']);
    expect([asked(), ...state()]).toEqual([1, false, false]);
    pass(5_000);
    expect(state()).toEqual([true, false]);
    expect(await ends.renew()).toBe('unknown');
    release('second', 60_000);
    expect(await ends.renew()).toBe('changed');
  });

  test('that could not be asked for end when they would have', async () => {
    const { ends, pass, state } = startedWith(60_000);
    pass(59_000);
    expect(await ends.renew()).toBe('unknown');
    expect(state()).toEqual([false, false]);
    pass(1_000);
    expect(state()).toEqual([true, true]);
  });
});

const START_MS = Date.parse('2026-01-02T03:04:05.678Z');

/** A sidecar that gives one value after the other, and the machine's two clocks, of which one can be set. */
class Machine {
  trueMs = START_MS;
  setBackMs = 0;
  /** While a value is on its way. */
  onWay = (): void => undefined;
  isDown = false;
  #issued = { text: 'value-0', endsAtMs: START_MS };
  #count = 0;

  readonly clocks = { clock: { now: () => this.trueMs - this.setBackMs }, monotonicNow: () => this.trueMs };

  /** The sidecar keeps a value until half a minute before its end. */
  give(lifeMs: number): ReleasedValues {
    if (this.#issued.endsAtMs - this.trueMs <= 30_000) {
      this.#count += 1;
      this.#issued = { text: `value-${this.#count}`, endsAtMs: this.trueMs + lifeMs };
    }
    const { text, endsAtMs } = this.#issued;
    return { values: new Map([['ci/token', new Secret(text)]]), endsAt: endsAtMs - this.setBackMs, bearer: null };
  }

  get endsAtMs(): number {
    return this.#issued.endsAtMs;
  }

  start(lifeMs: number): { readonly ends: ValueEnds; readonly endsAtMs: number } {
    const asked = readClocks(this.clocks);
    const released = this.give(lifeMs);
    const release = async () => {
      if (this.isDown) return err('down');
      const given = this.give(lifeMs);
      this.onWay();
      return ok(given);
    };
    return { ends: new ValueEnds(released, asked, { ...this.clocks, release }), endsAtMs: this.endsAtMs };
  }
}

const step = fc.record({
  passMs: fc.constantFrom(0, 5_000, 29_000, 31_000, 90_000),
  setBackMs: fc.constantFrom(0, 0, -600_000, 20_000, 600_000, 3_600_000),
  takesMs: fc.constantFrom(0, 0, 20_000, 70_000),
  setBackOnWayMs: fc.constantFrom(0, 0, 600_000),
  lifeMs: fc.constantFrom(40_000, 60_000, 300_000),
  isDown: fc.boolean(),
});

test('no value of a server is taken for one that lasts past its end, whatever the clock is set to', async () => {
  let lasting = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const machine = new Machine();
      let server = machine.start(60_000);
      for (const { passMs, setBackMs, takesMs, setBackOnWayMs, lifeMs, isDown } of steps) {
        machine.trueMs += passMs;
        machine.setBackMs += setBackMs;
        machine.isDown = isDown;
        machine.onWay = () => {
          machine.trueMs += takesMs;
          machine.setBackMs += setBackOnWayMs;
        };
        const renewal = server.ends.isRenewalDue ? await server.ends.renew() : 'same';
        // As the gateway does: a server with another value is started again.
        if (renewal === 'changed') server = machine.start(lifeMs);
        if (!server.ends.hasEnded) lasting += 1;
        expect(server.ends.hasEnded || machine.trueMs < server.endsAtMs).toBe(true);
      }
    }),
    { numRuns: 200, seed: 23 },
  );
  expect(lasting).toBeGreaterThan(200);
});
