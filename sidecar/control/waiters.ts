/** Those who wait until something may have changed. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Tells all of them that it may have. */
  wake(): void {
    for (const waiter of this.#waiting) waiter();
  }

  /** Waits to be told, at most for `ms`, less when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiting.add(done);
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }

  /** Calls `listener` each time; returns the way to cancel it. */
  add(listener: () => void): () => void {
    this.#waiting.add(listener);
    return () => void this.#waiting.delete(listener);
  }
}
