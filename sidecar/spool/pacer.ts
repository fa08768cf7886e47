interface PacerOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** In [0, 1). Spreads the sidecars of one control plane, so that they do not reconnect all at once. */
  readonly random: () => number;
}

/** Paces a retry loop: each failure doubles the wait (with jitter, up to `maxMs`), a success resets it, and {@link wake} ends the current wait. */
export class Pacer {
  readonly #options: PacerOptions;
  #failures = 0;
  #wake: (() => void) | null = null;

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  noteSuccess(): void {
    this.#failures = 0;
  }

  /** Waits after a failure. */
  async backOff(): Promise<void> {
    const { baseMs, maxMs, random } = this.#options;
    const ceiling = Math.min(maxMs, baseMs * 2 ** this.#failures);
    this.#failures += 1;
    await this.wait(ceiling / 2 + (random() * ceiling) / 2);
  }

  /** Waits until {@link wake}, for at most `ms`; without `ms` indefinitely. */
  wait(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? null : setTimeout(() => this.wake(), ms);
      timer?.unref();
      this.#wake = () => {
        if (timer !== null) clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
    });
  }

  wake(): void {
    this.#wake?.();
  }
}
