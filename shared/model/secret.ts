/** The largest secret, in bytes of UTF-8: no upstream accepts a larger header. */
export const MAX_SECRET_BYTES = 64 * 1024;

/** The most values in one check whether they are stored. */
export const MAX_CHECKED_VALUES = 64;

const REDACTED = '[secret]';

/**
 * A credential in memory. It prints as `[secret]` through String(), template literals, JSON and util.inspect, so that a log
 * line, an error message or an audit record cannot contain it by mistake.
 *
 * `reveal()` is called only where a credential is written onto a request, or sealed; `npm test` checks the list of files.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The credential itself, as the text that was stored. */
  reveal(): string {
    return this.#value;
  }

  /** Whether both are the same text. */
  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return REDACTED;
  }
}
