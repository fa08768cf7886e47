/** Limits concurrent work to a number of slots. Callers wait in order for a free one. */
export class Slots {
  readonly #patienceMs: number | null;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** `patienceMs`: how long callers wait at most; null: without a limit. */
  constructor(most: number, patienceMs: number | null) {
    this.#free = most;
    this.#patienceMs = patienceMs;
  }

  /** Runs the work in a slot. Throws if none becomes free in time. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    await this.#enter();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const timer =
      this.#patienceMs === null ? undefined : setTimeout(() => this.#turnAway(resolve, reject), this.#patienceMs);
    await promise.finally(() => clearTimeout(timer));
  }

  #turnAway(waiter: () => void, reject: (error: Error) => void): void {
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
    reject(new Error('no slot became free in time'));
  }

  /** The slot goes to the caller that has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
