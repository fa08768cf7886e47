import type { Clock } from '../../shared/model/clock.ts';

const START_MS = Date.parse('2026-01-02T03:04:05.678Z');

/** A moment by the issuer's clock, with how the clocks of this machine differ from it. */
export interface Moment {
  readonly trueMs: number;
  /** The wall clock here is so much ahead of the issuer's; behind, if negative. */
  readonly aheadMs: number;
  /** How long the machine has slept so far. */
  readonly sleptMs: number;
}

/**
 * The issuer's time, and a machine's two clocks beside it: a wall clock that anybody can set, and a monotonic one that stands still
 * while the machine sleeps.
 */
export class TwoClocks implements Clock {
  #trueMs = START_MS;
  #aheadMs = 0;
  #sleptMs = 0;

  /** The time by the wall clock of the machine. */
  readonly now = (): number => this.#trueMs + this.#aheadMs;
  readonly monotonicNow = (): number => this.#trueMs - START_MS - this.#sleptMs;

  get moment(): Moment {
    return { trueMs: this.#trueMs, aheadMs: this.#aheadMs, sleptMs: this.#sleptMs };
  }

  pass(ms: number): void {
    this.#trueMs += ms;
  }

  sleep(ms: number): void {
    this.#trueMs += ms;
    this.#sleptMs += ms;
  }

  /** Somebody sets the wall clock. */
  set(aheadMs: number): void {
    this.#aheadMs = aheadMs;
  }
}

/**
 * How long a value may outlive its end: only if both clocks have lost time since `then`, because the machine slept and its wall clock
 * was set back. No clock of the machine shows that. 0 in every other case.
 */
export function lostByBoth(then: Moment, now: Moment): number {
  return Math.max(0, Math.min(now.sleptMs - then.sleptMs, then.aheadMs - now.aheadMs));
}
