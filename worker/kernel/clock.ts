import { leftUntil, type Moment, type TwoClocks } from '../../shared/model/clock.ts';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds by a clock that nobody sets; without it, the other one is read for both. */
  monotonicNow?(): number;
  /** Resolves after this time, or at once when the signal is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of the runtime. */
export const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** The two clocks that each end a thing. */
export function twoClocks(clock: Clock): TwoClocks {
  return { clock, monotonicNow: () => clock.monotonicNow?.() ?? clock.now() };
}

/** A moment in milliseconds since the epoch, by the machine's clock as it is now: it may have been set since. */
export function wallTimeOf(moment: Moment, clock: Clock): number {
  return clock.now() + leftUntil(moment, twoClocks(clock));
}
