import { leftUntil, type Moment, momentAt, readClocks, type TwoClocks } from '../../shared/model/clock.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import type { ReleasedValues } from '../gateway_ports.ts';

export interface ValueEndsOptions extends TwoClocks {
  /** Releases the values again, as they are now. */
  readonly release: () => Promise<Result<ReleasedValues, unknown>>;
}

/** Whether the values are still those that the server was started with; `unknown` if they could not be asked for. */
type Renewal = 'same' | 'changed' | 'unknown';

/** Values are asked for again this long before the first of them ends. */
const AHEAD_MS = 30_000;
/** The next value may not be there yet when it is asked for ahead of need. */
const AGAIN_MS = 5_000;

/** When the values end that a server was started with: a minted one does after minutes. The end comes by each of two clocks. */
export class ValueEnds {
  readonly #options: ValueEndsOptions;
  readonly #values: ReadonlyMap<string, Secret>;
  #end: Moment;
  #nextAsk: Moment;
  #renewing: Promise<Renewal> | null = null;

  /** `asked`: before the values were asked for. */
  constructor(released: ReleasedValues, asked: Moment, options: ValueEndsOptions) {
    this.#options = options;
    this.#values = released.values;
    this.#end = endOf(released, asked);
    this.#nextAsk = aheadOf(this.#end);
  }

  /** True from the moment on at which one of them must not be used any more. */
  get hasEnded(): boolean {
    return leftUntil(this.#end, this.#options) <= 0;
  }

  /** True if they have ended, or end soon and were not asked for a moment ago. */
  get isRenewalDue(): boolean {
    return this.hasEnded || leftUntil(this.#nextAsk, this.#options) <= 0;
  }

  /** Asks for the values again. Those that stayed the same may have a later end, such as what is read in a secret manager. */
  renew(): Promise<Renewal> {
    this.#renewing ??= this.#ask().finally(() => (this.#renewing = null));
    return this.#renewing;
  }

  async #ask(): Promise<Renewal> {
    const asked = readClocks(this.#options);
    this.#nextAsk = momentAt(asked.wall + AGAIN_MS, asked);
    const released = await this.#options.release();
    if (!released.ok) return 'unknown';
    const { values } = released.value;
    if ([...this.#values].some(([path, secret]) => values.get(path)?.equals(secret) !== true)) return 'changed';
    const before = this.#end;
    this.#end = endOf(released.value, asked);
    if (this.#end.wall > before.wall) this.#nextAsk = aheadOf(this.#end);
    return 'same';
  }
}

const aheadOf = ({ wall, monotonic }: Moment): Moment => ({ wall: wall - AHEAD_MS, monotonic: monotonic - AHEAD_MS });

const endOf = ({ endsAt }: ReleasedValues, asked: Moment): Moment =>
  momentAt(endsAt ?? Number.POSITIVE_INFINITY, asked);
