export const MAX_PROBLEMS = 20;
/** Most items of all the lists of one entry: a bound on the work, for lists hold lists. The largest real entry has some 400. */
const MAX_ITEMS = 5_000;

/** The reading of one entry: what was left out of it, and how much more is read. */
export class EntryReading {
  readonly problems: string[] = [];
  #itemsLeft = MAX_ITEMS;

  /** Tells of something that was left out. */
  note(problem: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }

  /** The items of a list, as many as are read; none when the value is no list. */
  items(value: unknown, what: string, most: number): readonly unknown[] {
    if (!Array.isArray(value)) return [];
    const items: readonly unknown[] = value.slice(0, Math.min(most, this.#itemsLeft));
    this.#itemsLeft -= items.length;
    if (items.length < value.length) this.note(`${value.length - items.length} more ${what} were left out`);
    return items;
  }
}
