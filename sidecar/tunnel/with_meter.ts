import type { splice } from '../../machine/connection/splice.ts';
import type { ByteMeter } from '../exchange/request_counts.ts';

/** What {@link splice} passes its bytes through. */
type Through = NonNullable<Parameters<typeof splice>[2]>;

/** The same, and what comes out of it is counted. */
export function withMeter(meter: ByteMeter | null, inner?: Through): Through | undefined {
  return meter === null ? inner : new Metered(meter, inner);
}

class Metered implements Through {
  readonly #meter: ByteMeter;
  readonly #inner: Through | undefined;

  constructor(meter: ByteMeter, inner: Through | undefined) {
    this.#meter = meter;
    this.#inner = inner;
  }

  push(chunk: Uint8Array): Uint8Array[] {
    return this.#count(this.#inner === undefined ? [chunk] : this.#inner.push(chunk));
  }

  flush(): Uint8Array[] {
    return this.#count(this.#inner?.flush() ?? []);
  }

  #count(pieces: Uint8Array[]): Uint8Array[] {
    this.#meter.addAll(pieces);
    return pieces;
  }
}
