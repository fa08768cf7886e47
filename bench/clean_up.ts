/** Ends everything that was started, in reverse order: at the end, on an error and on Ctrl-C. */
export class CleanUp {
  readonly #steps: (() => Promise<unknown> | void)[] = [];
  #running: Promise<void> | null = null;

  add<T extends { stop(): Promise<unknown> }>(started: T): T {
    this.#steps.push(() => started.stop());
    return started;
  }

  do(step: () => void): void {
    this.#steps.push(step);
  }

  run(): Promise<void> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        process.stderr.write(`clean-up: ${error instanceof Error ? error.message : 'failed'}\n`);
      }
    }
  }

  /** On Ctrl-C, ends everything that was started before this program. */
  onSignal(): void {
    const INTERRUPTED = 130;
    process.once('SIGINT', () => void this.run().then(() => process.exit(INTERRUPTED)));
    process.once('SIGTERM', () => void this.run().then(() => process.exit(INTERRUPTED)));
  }
}
