/** How the last use of a dependency went, as this program has seen it. */
export interface SeenOutcome {
  /** The last failure in words without secrets; null if the last use succeeded. */
  readonly problem: string | null;
  /** Since when every use fails; null if the last one succeeded. */
  readonly failingSinceMs: number | null;
  readonly workedAtMs: number | null;
}

/** Enterprises have their own providers, so there may be many names. What all of them share is used often, and stays. */
const MOST_SEEN = 5_000;

/** Remembers in memory how the uses of dependencies went. Nothing is called to find out. */
export class SeenOutcomes {
  readonly #seen = new Map<string, SeenOutcome>();

  note(name: string, problem: string | null, nowMs: number): void {
    const before = this.#seen.get(name);
    this.#seen.delete(name);
    this.#seen.set(
      name,
      problem === null
        ? { problem, failingSinceMs: null, workedAtMs: nowMs }
        : { problem, failingSinceMs: before?.failingSinceMs ?? nowMs, workedAtMs: before?.workedAtMs ?? null },
    );
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** Null if it was not used since the program started. */
  of(name: string): SeenOutcome | null {
    return this.#seen.get(name) ?? null;
  }
}
