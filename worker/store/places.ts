/** Where so many may be at a time: whoever comes when every place is taken waits, in the order of coming. */
export class Places {
  readonly #patienceMs: number | null;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** `patienceMs`: who has waited so long is turned away; null: they wait for as long as it takes. */
  constructor(most: number, patienceMs: number | null) {
    this.#free = most;
    this.#patienceMs = patienceMs;
  }

  /** Does the work in a place of its own. Throws when none becomes free in time. */
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

  #turnAway(place: () => void, reject: (error: Error) => void): void {
    this.#waiting.splice(this.#waiting.indexOf(place), 1);
    reject(new Error('no place became free in time'));
  }

  /** The place goes to who has waited longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
