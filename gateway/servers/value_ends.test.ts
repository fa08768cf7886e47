import { describe, expect, test } from 'vitest';
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
