import type { Clock } from './service_context.ts';

/**
 * Puts work that would get in one another's way in a row, so that it need not be tried again. It makes things quick and not
 * right: what is written holds whether anybody took turns or not.
 */
export interface Turns {
  take<T>(of: string, work: () => Promise<T>): Promise<T>;
}

/** For a runtime whose requests may not wait for one another (workerd). */
export const NO_TURNS: Turns = { take: (_, work) => work() };

/** After this time work begins out of turn: what is before it waits for a database that does not answer. */
const PATIENCE_MS = 1_000;

/** For a runtime where one program serves every request. */
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
