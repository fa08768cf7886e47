import { leftUntil, type Moment, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import { type Clock, twoClocks } from './clock.ts';

interface SeenEnd {
  readonly storedAt: string;
  readonly expiresAt: string;
  readonly end: Moment;
}

/** With more, the oldest is forgotten. */
const MOST_SEEN = 100_000;

/**
 * The ends of stored values, by the clock that nobody sets, from when this program first saw them: the machine's clock may be set back
 * meanwhile (decision 0172). It is kept in memory, so a program that has just started knows none.
 */
export class SeenEnds {
  readonly #clocks: TwoClocks;
  readonly #seen = new Map<string, SeenEnd>();

  constructor(clock: Clock) {
    this.#clocks = twoClocks(clock);
  }

  /** Milliseconds until the end of a value, by the clock that comes to it first. `key` names its row, which holds one value at a time. */
  leftOf(key: string, { storedAt, expiresAt }: { readonly storedAt: string; readonly expiresAt: string }): number {
    const seen = this.#seen.get(key);
    if (seen?.storedAt === storedAt && seen.expiresAt === expiresAt) return leftUntil(seen.end, this.#clocks);
    const end = momentAt(Date.parse(expiresAt), readClocks(this.#clocks));
    this.#seen.delete(key);
    this.#seen.set(key, { storedAt, expiresAt, end });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    return leftUntil(end, this.#clocks);
  }
}
