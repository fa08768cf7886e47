import type { Clock } from './clock.ts';

/**
 * Queues work on the same key, so that it does not conflict and need a retry. This is only an optimisation: writes are
 * correct without it.
 */
export interface Turns {
  take<T>(of: string, work: () => Promise<T>): Promise<T>;
}

/** For a runtime whose requests cannot wait for each other (workerd). */
export const NO_TURNS: Turns = { take: (_, work) => work() };

/** After this time work starts out of turn: the work before it hangs on a database that does not answer. */
const PATIENCE_MS = 1_000;

/** For a runtime where one program serves all requests. */
export class QueuedTurns implements Turns {
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #ends = new Map<string, Promise<void>>();

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  async take<T>(of: string, work: () => Promise<T>): Promise<T> {
    const before = this.#ends.get(of);
    const { promise: end, resolve } = Promise.withResolvers<void>();
    this.#ends.set(of, end);
    try {
      if (before !== undefined) await this.#atMostFor(before);
      return await work();
    } finally {
      resolve();
      if (this.#ends.get(of) === end) this.#ends.delete(of);
    }
  }

  async #atMostFor(before: Promise<void>): Promise<void> {
    const over = new AbortController();
    await Promise.race([before, this.#clock.sleep(PATIENCE_MS, over.signal)]);
    over.abort();
  }
}
