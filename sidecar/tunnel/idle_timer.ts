/** Closes an idle tunnel; never cuts off an exchange. */
export class IdleTimer {
  readonly #close: () => void;
  readonly #idleMs: number;
  #timer: NodeJS.Timeout;
  /** When the wait for a request began; null while one is served. */
  #waitingSince: number | null = null;

  constructor(close: () => void, seconds: number) {
    this.#close = close;
    this.#idleMs = seconds * 1000;
    this.#timer = this.#look(this.#idleMs);
  }

  start(): void {
    this.#waitingSince = performance.now();
  }

  stop(): void {
    this.#waitingSince = null;
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  /** Resetting the timer for each request costs more than reading the clock, so an early timer checks the time and continues. */
  #look(afterMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      const waitedMs = this.#waitingSince === null ? 0 : performance.now() - this.#waitingSince;
      if (waitedMs >= this.#idleMs) this.#close();
      else this.#timer = this.#look(this.#idleMs - waitedMs);
    }, afterMs);
  }
}
