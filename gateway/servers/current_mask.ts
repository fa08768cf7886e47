import type { FilledBearer } from './launch_values.ts';
import { SecretMask } from './secret_mask.ts';

/** A server may accept a token for longer than its end, by a clock of its own. */
const KEPT_AFTER_END_MS = 300_000;
const MOST_TOKENS = 16;

/**
 * What masks a server's secrets now. They may change while it runs: an access token that is given out later is masked too, and
 * those before it as long as they are good for anything.
 */
export class CurrentMask {
  readonly #values: readonly string[];
  #bearers: readonly FilledBearer[];
  #now: SecretMask;

  constructor(values: readonly string[], bearer: FilledBearer | null) {
    this.#values = values;
    this.#bearers = bearer === null ? [] : [bearer];
    this.#now = this.#made();
  }

  get now(): SecretMask {
    return this.#now;
  }

  /** Takes a token that was given out at `at`, in milliseconds since the epoch. */
  add(bearer: FilledBearer, at: number): void {
    const good = this.#bearers.filter(({ text, expiresAt }) => {
      return text !== bearer.text && (expiresAt === null || expiresAt + KEPT_AFTER_END_MS > at);
    });
    this.#bearers = [...good, bearer].slice(-MOST_TOKENS);
    this.#now = this.#made();
  }

  #made(): SecretMask {
    return new SecretMask([...this.#values, ...this.#bearers.map(({ text }) => text)]);
  }
}
