import { expect, test } from 'vitest';
import { err } from '../../shared/model/result.ts';
import { CALL_LIMITS, type Outbound } from './outbound.ts';
import { withinTime } from './outbound_within.ts';

const REQUEST = { method: 'GET', url: 'https://a.test/', headers: {}, body: null } as const;

/** Calls that each take some time by a clock with fractions of a millisecond, as that of the runtime has. */
function slowCalls(tookMs: number, totalMs: number) {
  let now = 1_000;
  const clock = { now: () => now, monotonicNow: () => now / 3, sleep: () => Promise.resolve() };
  const timeouts: (number | undefined)[] = [];
  const call: Outbound['call'] = ({ limits }) => {
    timeouts.push(limits?.timeoutMs);
    now += tookMs;
    return Promise.resolve(err({ reason: 'upstream_unreachable', message: 'slow' }));
  };
  return { timeouts, within: withinTime({ outbound: { call }, clock }, totalMs) };
}

test('each call has whole milliseconds of what the earlier ones left', async () => {
  const { timeouts, within } = slowCalls(4_000, 9_000);
  await within.call(REQUEST);
  await within.call(REQUEST);
  await within.call(REQUEST);
  expect(timeouts).toEqual([9_000, 5_000, 1_000].map((ms) => Math.min(ms, CALL_LIMITS.timeoutMs)));
});

test('no call is made when less than a millisecond is left', async () => {
  const { timeouts, within } = slowCalls(4_000, 4_000);
  await within.call(REQUEST);
  expect(await within.call(REQUEST)).toMatchObject({ error: { message: expect.stringContaining('was not called') } });
  expect(timeouts).toHaveLength(1);
});
