import type { Lifetime } from '../kernel/lifetime.ts';
import type { Clock } from '../kernel/clock.ts';

/** What starts the work and how long callers wait for it. */
type Joining = Pick<Lifetime, 'defer'> & { readonly clock: Clock };

const LOOK_MS = 20;
/** Work that started this long ago is considered lost with its request. */
const LOST_MS = 35_000;

/**
 * Does the same work once for concurrent callers. They share only the time when the work started, because a workerd
 * request must not await another request's promise. Later callers look again until the result is there.
 */
export class Flights {
  readonly #began = new Map<string, number>();

  /**
   * Returns what `look` finds after `work` ran once. Null if nothing is there after `patienceMs`; the work continues.
   * `work` must leave something for `look` to find even if it fails.
   */
  async join<T>(
    context: Joining,
    flight: {
      readonly key: string;
      readonly patienceMs: number;
      readonly look: () => T | null;
      readonly work: () => Promise<void>;
    },
  ): Promise<T | null> {
    const ends = context.clock.now() + flight.patienceMs;
    for (;;) {
      const found = flight.look();
      if (found !== null) return found;
      const leftMs = ends - context.clock.now();
      if (leftMs <= 0) return null;
      if (this.#isUnderWay(context, flight.key)) await context.clock.sleep(Math.min(LOOK_MS, leftMs));
      else await this.#begin(context, flight.key, flight.work, leftMs);
    }
  }

  #isUnderWay({ clock }: Joining, key: string): boolean {
    const began = this.#began.get(key);
    return began !== undefined && clock.now() - began < LOST_MS;
  }

  async #begin(context: Joining, key: string, work: () => Promise<void>, patienceMs: number): Promise<void> {
    const began = context.clock.now();
    this.#began.set(key, began);
    const flown = work().finally(() => {
      if (this.#began.get(key) === began) this.#began.delete(key);
    });
    // It continues if its caller has gone or stopped waiting.
    context.defer(`a call that others wait for`, () => flown);
    const over = new AbortController();
    await Promise.race([flown, context.clock.sleep(patienceMs, over.signal)]);
    over.abort();
  }
}
