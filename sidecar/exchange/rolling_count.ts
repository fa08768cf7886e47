/** The oldest counts that a limit still needs, by the number of their interval since the epoch. */
export type CountEntries = readonly (readonly [interval: number, count: number])[];

/**
 * Counts events in a span that moves with the time. It counts by intervals, and an interval that has only begun to leave the
 * span still counts as a whole, so that no span ever has more events than a limit on {@link total} allows.
 */
export class RollingCount {
  readonly #intervalMs: number;
  readonly #intervals: number;
  /** In the order of time. */
  readonly #counts = new Map<number, number>();
  #total = 0;
  #newest = 0;

  /** The span is `intervals` times `intervalMs`. `entries` are those of an earlier count. */
  constructor(intervalMs: number, intervals: number, entries: CountEntries = []) {
    this.#intervalMs = intervalMs;
    this.#intervals = intervals;
    for (const [interval, count] of entries.toSorted(([a], [b]) => a - b)) this.#put(interval, count);
  }

  add(now: number, count = 1): void {
    this.#put(this.#current(now), count);
  }

  total(now: number): number {
    this.#current(now);
    return this.#total;
  }

  /** Milliseconds until the total is below `limit`; 0 if it is. */
  waitFor(limit: number, now: number): number {
    let left = this.total(now);
    if (left < limit) return 0;
    for (const [interval, count] of this.#counts) {
      left -= count;
      if (left < limit) return (interval + this.#intervals + 1) * this.#intervalMs - now;
    }
    return 0;
  }

  entries(now: number): CountEntries {
    this.#current(now);
    return [...this.#counts];
  }

  /** The interval of this moment, after what has left the span is dropped. If the clock was set back, later counts count as of now. */
  #current(now: number): number {
    const current = Math.floor(now / this.#intervalMs);
    for (const [interval, count] of this.#counts) {
      if (interval >= current - this.#intervals) break;
      this.#remove(interval, count);
    }
    if (this.#newest > current) this.#countAsOf(current);
    return current;
  }

  #countAsOf(current: number): void {
    const later = [...this.#counts].filter(([interval]) => interval > current);
    for (const [interval, count] of later) this.#remove(interval, count);
    this.#newest = current;
    this.#put(
      current,
      later.reduce((sum, [, count]) => sum + count, 0),
    );
  }

  #remove(interval: number, count: number): void {
    this.#counts.delete(interval);
    this.#total -= count;
  }

  #put(interval: number, count: number): void {
    this.#newest = Math.max(this.#newest, interval);
    this.#counts.set(interval, (this.#counts.get(interval) ?? 0) + count);
    this.#total += count;
  }
}
