/** What has to be taken back, last first. */
export class UndoStack {
  readonly #steps: (() => Promise<void>)[] = [];
  readonly #onFailure: (error: unknown) => void;

  /** `onFailure` hears of a step that failed; the others are taken back all the same. */
  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  add(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  /** Keeps what was made. */
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
