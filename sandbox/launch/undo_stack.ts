/** Undo steps, run in reverse order. */
export class UndoStack {
  readonly #steps: (() => Promise<void>)[] = [];
  readonly #onFailure: (error: unknown) => void;

  /** `onFailure` is called for a failed step; the others still run. */
  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  add(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  /** Forgets the steps, so that nothing is undone. */
  keep(): void {
    this.#steps.length = 0;
  }

  async undo(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        this.#onFailure(error);
      }
    }
  }
}
