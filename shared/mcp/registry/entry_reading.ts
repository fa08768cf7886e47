export const MAX_PROBLEMS = 20;
/** The most items over all lists of one entry; bounds the work, because lists are nested. The largest real entry has some 400. */
const MAX_ITEMS = 5_000;

/** The state of reading one entry: its problems, and how much more may be read. */
export class EntryReading {
  readonly problems: string[] = [];
  #itemsLeft = MAX_ITEMS;

  /** Records something that was omitted. */
  note(problem: string): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }

  /** The items of a list, up to the limit; none if the value is not a list. */
  items(value: unknown, what: string, most: number): readonly unknown[] {
    if (!Array.isArray(value)) return [];
    const items: readonly unknown[] = value.slice(0, Math.min(most, this.#itemsLeft));
    this.#itemsLeft -= items.length;
    if (items.length < value.length) this.note(`${value.length - items.length} more ${what} were left out`);
    return items;
  }
}
