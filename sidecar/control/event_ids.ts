import { randomFillSync } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_CHARACTERS = 10;
const RANDOM_CHARACTERS = 16;

/**
 * Makes ids of audit events, of the form that `newId` of shared/wire/ids.ts gives with a time: 48 bits of milliseconds,
 * then 80 random bits. It is apart from that function because one is made for every request, where BigInt costs too much.
 */
export class EventIds {
  readonly #random = Buffer.alloc(RANDOM_CHARACTERS * 256);
  #used = this.#random.length;
  #prefixMs = -1;
  #prefix = '';

  next(nowMs: number): string {
    if (nowMs !== this.#prefixMs) {
      this.#prefixMs = nowMs;
      this.#prefix = `evt_${timeCharacters(nowMs)}`;
    }
    if (this.#used === this.#random.length) {
      randomFillSync(this.#random);
      this.#used = 0;
    }
    let id = this.#prefix;
    for (const end = this.#used + RANDOM_CHARACTERS; this.#used < end; this.#used += 1) {
      id += ALPHABET.charAt((this.#random[this.#used] ?? 0) & 31);
    }
    return id;
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
