/** The slot of one start. */
export interface StartSlot {
  /** Frees the slot while this runs, and then waits for one again. */
  leave<T>(work: () => Promise<T>): Promise<T>;
}

/** Limits concurrent starts; the others wait in order. */
export class StartSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: (slot: StartSlot) => Promise<T>): Promise<T> {
    await this.#take();
    try {
      return await work({ leave: (other) => this.#leave(other) });
    } finally {
      this.#release();
    }
  }

  async #leave<T>(work: () => Promise<T>): Promise<T> {
    this.#release();
    try {
      return await work();
    } finally {
      await this.#take();
    }
  }

  async #take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
