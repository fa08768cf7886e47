/** Callers that wait until something may have changed. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Wakes all of them. */
  wake(): void {
    for (const waiter of this.#waiting) waiter();
  }

  /** Waits to be woken, for at most `ms` or until the signal is aborted. */
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

  /** Calls `listener` each time; returns a function that unsubscribes it. */
  add(listener: () => void): () => void {
    this.#waiting.add(listener);
    return () => void this.#waiting.delete(listener);
  }
}
