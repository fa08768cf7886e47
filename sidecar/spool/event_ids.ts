import { randomFillSync } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const ALPHABET_BYTES = Buffer.from(ALPHABET, 'latin1');
const TIME_CHARACTERS = 10;
const RANDOM_CHARACTERS = 16;

/**
 * Makes ids of audit events in the form of `newId` of shared/wire/ids.ts with a time: 48 bits of milliseconds, then 80
 * random bits. It is a separate function because one id is made per request, where BigInt costs too much.
 */
export class EventIds {
  /** Random characters for the next ids, generated for many at once. */
  readonly #random = Buffer.alloc(RANDOM_CHARACTERS * 256);
  #used = this.#random.length;
  #prefixMs = -1;
  #prefix = '';

  nextId(nowMs: number): string {
    if (nowMs !== this.#prefixMs) {
      this.#prefixMs = nowMs;
      this.#prefix = `evt_${timeCharacters(nowMs)}`;
    }
    if (this.#used === this.#random.length) this.#fill();
    const start = this.#used;
    this.#used += RANDOM_CHARACTERS;
    return this.#prefix + this.#random.toString('latin1', start, this.#used);
  }

  #fill(): void {
    const random = randomFillSync(this.#random);
    // Without an iterator, which costs as much as the rest of an event.
    for (let at = 0; at < random.length; at += 1) random[at] = ALPHABET_BYTES[(random[at] ?? 0) & 31] ?? 0;
    this.#used = 0;
  }
}

function timeCharacters(nowMs: number): string {
  let rest = nowMs;
  let text = '';
  for (let index = 0; index < TIME_CHARACTERS; index += 1) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
