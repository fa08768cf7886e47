/** Wall-clock time; tests pass a clock that they control. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

/** The machine's clock can be set back; one that nobody sets may stand still while the machine sleeps. So each can end a thing. */
export interface TwoClocks {
  readonly clock: Clock;
  /** Milliseconds by the clock that nobody sets; without it, the machine's clock is read for both. */
  readonly monotonicNow?: () => number;
}

/** One moment by each clock, in milliseconds; the machine's counts from the epoch. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

export function readClocks(clocks: TwoClocks): Moment {
  return { monotonic: monotonicNow(clocks), wall: clocks.clock.now() };
}

/** When the machine's clock shows `wall`, if nobody sets it after `from`. */
export function momentAt(wall: number, from: Moment): Moment {
  return { wall, monotonic: from.monotonic + wall - from.wall };
}

/** Milliseconds until a moment, by the clock that comes to it first; 0 or less from then on. */
export function leftUntil(end: Moment, clocks: TwoClocks): number {
  return Math.min(end.wall - clocks.clock.now(), end.monotonic - monotonicNow(clocks));
}

function monotonicNow({ clock, monotonicNow: read }: TwoClocks): number {
  return read?.() ?? clock.now();
}
