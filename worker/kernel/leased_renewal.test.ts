import { describe, expect, test } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import { isOfFuture, isRenewalDue, isUsable, LEASE_MS, lease, MOST_SKEW_MS } from './leased_renewal.ts';
import { SeenEnds } from './seen_ends.ts';

const NOW = Date.parse('2026-01-01T00:00:00.000Z');
const clock = { now: () => NOW, sleep: () => Promise.resolve() };
const context = { clock, seenEnds: new SeenEnds(clock) };

/** A value of an hour that another worker stored, whose clock is ahead. */
const storedAhead = (aheadMs: number, isLast: boolean) => ({
  storedAt: new Date(NOW + aheadMs).toISOString(),
  expiresAt: new Date(NOW + aheadMs + 3_600_000).toISOString(),
  isLast,
});

describe('a value that a worker stored whose clock is ahead', () => {
  test.each([
    ['that can be renewed', false, 10_000],
    ['that cannot be renewed', true, MOST_SKEW_MS],
  ])('%s is sent as far ahead as clocks may be', (_which, isLast, mostMs) => {
    const within = storedAhead(mostMs, isLast);
    const beyond = storedAhead(mostMs + 1, isLast);
    expect([isUsable(context, 'a', within), isOfFuture(context, within)]).toEqual([true, false]);
    expect([isUsable(context, 'b', beyond), isOfFuture(context, beyond)]).toEqual([false, true]);
    expect(isRenewalDue(context, 'b', beyond)).toBe(true);
  });
});

const isTaken = (leaseUntil: number) =>
  lease({ clock, database: { write: async () => ok([]) } }, { lease: 'held', leaseUntil }, () => []);

describe('a lease', () => {
  test('of a worker whose clock is ahead is respected, and one that no clock explains is not', async () => {
    expect(await isTaken(NOW + LEASE_MS + MOST_SKEW_MS)).toBe(false);
    expect(await isTaken(NOW + LEASE_MS + MOST_SKEW_MS + 1)).toBe(true);
  });
});
