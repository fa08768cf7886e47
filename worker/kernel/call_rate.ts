/** Who makes calls: people and their programs, their sidecars, or their directory. None can use up what another has. */
export type CallSide = 'people' | 'sidecars' | 'directory';

/** Whether a call is let through. `isFirst`: no other call of this side was refused in the last minute. */
export type RateVerdict =
  | { readonly isAdmitted: true }
  | { readonly isAdmitted: false; readonly retryAfterSeconds: number; readonly isFirst: boolean };

interface Bucket {
  calls: number;
  atMs: number;
  refusedAtMs: number | null;
}

const MINUTE_MS = 60_000;
/** With more buckets, those that are full again are dropped, once a minute. */
const MANY_BUCKETS = 10_000;

/**
 * Limits how many calls an enterprise makes, so that one cannot use up what all share. Each enterprise has a bucket of as many calls
 * as it may make in a minute, which fills evenly. It is kept in memory: each worker counts for itself. Other things that are bounded
 * in the same way have sides and ids of their own.
 */
export class CallRate<Side extends string = CallSide> {
  readonly #now: () => number;
  readonly #perMinute: number;
  readonly #buckets = new Map<string, Bucket>();
  #droppedAtMs = 0;

  /** `now`: milliseconds since the epoch. */
  constructor(now: () => number, perMinute: number) {
    this.#now = now;
    this.#perMinute = perMinute;
  }

  take(side: Side, enterpriseId: string): RateVerdict {
    const nowMs = this.#now();
    const key = `${side} ${enterpriseId}`;
    const bucket = this.#buckets.get(key) ?? { calls: this.#perMinute, atMs: nowMs, refusedAtMs: null };
    const gained = ((nowMs - bucket.atMs) / MINUTE_MS) * this.#perMinute;
    bucket.calls = Math.min(this.#perMinute, bucket.calls + Math.max(0, gained));
    bucket.atMs = nowMs;
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > MANY_BUCKETS && nowMs - this.#droppedAtMs >= MINUTE_MS) this.#dropFull(nowMs);
    if (bucket.calls >= 1) {
      bucket.calls -= 1;
      return { isAdmitted: true };
    }
    const isFirst = bucket.refusedAtMs === null || nowMs - bucket.refusedAtMs >= MINUTE_MS;
    if (isFirst) bucket.refusedAtMs = nowMs;
    const secondsToOne = ((1 - bucket.calls) * MINUTE_MS) / this.#perMinute / 1000;
    return { isAdmitted: false, retryAfterSeconds: Math.max(1, Math.ceil(secondsToOne)), isFirst };
  }

  /** A bucket that has not been touched for a minute is full. */
  #dropFull(nowMs: number): void {
    this.#droppedAtMs = nowMs;
    for (const [key, { atMs }] of this.#buckets) if (nowMs - atMs >= MINUTE_MS) this.#buckets.delete(key);
  }
}
