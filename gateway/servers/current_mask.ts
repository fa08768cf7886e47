import { SecretMask } from './secret_mask.ts';

/** An access token as it is sent, and its end. */
export interface FilledBearer {
  readonly text: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number | null;
}

/** A server's clock may be late, so it may accept a token after its expiry. */
const KEPT_AFTER_END_MS = 300_000;
const MOST_TOKENS = 16;

/**
 * The current mask of a server's secrets. They may change while it runs: renewed access tokens are masked too, and old ones as
 * long as they may be valid.
 */
export class CurrentMask {
  readonly #values: readonly string[];
  #bearers: readonly FilledBearer[];
  #now: SecretMask;

  constructor(values: readonly string[], bearer: FilledBearer | null) {
    this.#values = values;
    this.#bearers = bearer === null ? [] : [bearer];
    this.#now = this.#buildMask();
  }

  get now(): SecretMask {
    return this.#now;
  }

  /** Adds a token that was issued at `at`, in milliseconds since the epoch. */
  add(bearer: FilledBearer, at: number): void {
    const good = this.#bearers.filter(({ text, expiresAt }) => {
      return text !== bearer.text && (expiresAt === null || expiresAt + KEPT_AFTER_END_MS > at);
    });
    this.#bearers = [...good, bearer].slice(-MOST_TOKENS);
    this.#now = this.#buildMask();
  }

  #buildMask(): SecretMask {
    return new SecretMask([...this.#values, ...this.#bearers.map(({ text }) => text)]);
  }
}
