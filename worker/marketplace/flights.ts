import type { Lifetime } from '../kernel/lifetime.ts';
import type { Clock } from '../kernel/service_context.ts';

/** Who begins work that others wait for, and how long they do. */
type Joining = Pick<Lifetime, 'defer'> & { readonly clock: Clock };

const LOOK_MS = 20;
/** Work that began so long ago is taken for lost with the request that began it. */
const LOST_MS = 35_000;

/**
 * One flight for many who want the same. What is shared is only the time that a flight began: a request of workerd must not
 * wait for a promise of another one, so those who come later look again until the result is there.
 */
export class Flights {
  readonly #began = new Map<string, number>();

  /**
   * What `look` finds, after `work` was done once by somebody. Null when it is not there after `patienceMs`: the work goes on.
   * `work` must leave something for `look` to find, also when it fails.
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
    // It goes on when who began it has gone, or waits no longer.
    context.defer(`a call that others wait for`, () => flown);
    const over = new AbortController();
    await Promise.race([flown, context.clock.sleep(patienceMs, over.signal)]);
    over.abort();
  }
}
