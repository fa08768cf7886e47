/** Bits of a signature: a text of 400 characters sets a sixth of them. */
const BITS = 1024;
const FIRST_WORDS = 8;

/** A set of slots, a bit for each. */
export type SlotSet = Uint32Array;

export function hasSlot(slots: SlotSet, slot: number): boolean {
  return (((slots[slot >>> 5] ?? 0) >>> (slot & 31)) & 1) === 1;
}

/**
 * Tells which of many texts cannot contain another one, without looking at them: each text sets a bit for every two
 * characters that follow each other, and the bits are stored by bit and not by text, so that a query reads some kilobytes.
 */
export class Signatures {
  /** For each bit, a set of the slots whose texts set it. */
  #columns = new Uint32Array(BITS * FIRST_WORDS);
  #words = FIRST_WORDS;
  #used = 0;
  readonly #free: number[] = [];

  /** Adds a text, and returns its slot. */
  add(text: string): number {
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >>> 5 >= this.#words) this.#grow();
    for (let at = 0; at < text.length; at += 1) {
      this.#set(bitOfOne(text, at), slot);
      if (at > 0) this.#set(bitOf(text, at), slot);
    }
    return slot;
  }

  /** Frees a slot for another text. */
  remove(slot: number): void {
    const mask = ~(1 << (slot & 31));
    for (let bit = 0; bit < BITS; bit += 1) {
      const at = bit * this.#words + (slot >>> 5);
      this.#columns[at] = (this.#columns[at] ?? 0) & mask;
    }
    this.#free.push(slot);
  }

  /** Every text that contains this one is in the set, and few others. */
  mayContain(text: string): SlotSet {
    const slots = new Uint32Array(this.#words).fill(~0);
    for (let at = text.length === 1 ? 0 : 1; at < text.length; at += 1) {
      const from = (at === 0 ? bitOfOne(text, at) : bitOf(text, at)) * this.#words;
      for (let word = 0; word < slots.length; word += 1) {
        slots[word] = (slots[word] ?? 0) & (this.#columns[from + word] ?? 0);
      }
    }
    return slots;
  }

  /** Every text that contains one of these. */
  mayContainAny(texts: Iterable<string>): SlotSet {
    const any = new Uint32Array(this.#words);
    for (const text of new Set(texts)) {
      const slots = this.mayContain(text);
      for (let word = 0; word < any.length; word += 1) any[word] = (any[word] ?? 0) | (slots[word] ?? 0);
    }
    return any;
  }

  #set(bit: number, slot: number): void {
    const at = bit * this.#words + (slot >>> 5);
    this.#columns[at] = (this.#columns[at] ?? 0) | (1 << (slot & 31));
  }

  #grow(): void {
    const words = this.#words * 2;
    const columns = new Uint32Array(BITS * words);
    for (let bit = 0; bit < BITS; bit += 1) {
      columns.set(this.#columns.subarray(bit * this.#words, (bit + 1) * this.#words), bit * words);
    }
    [this.#columns, this.#words] = [columns, words];
  }
}

function bitOfOne(text: string, at: number): number {
  return (text.charCodeAt(at) * 53 + 511) & (BITS - 1);
}

/** The bit of the character at `at` and the one before it. */
function bitOf(text: string, at: number): number {
  return (text.charCodeAt(at - 1) * 37 + text.charCodeAt(at)) & (BITS - 1);
}
