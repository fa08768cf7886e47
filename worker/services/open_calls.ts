import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';

/** How many calls of a kind one caller may have open at a time. Each of them looks at the database again and again. */
const MOST_OPEN = { 'audit stream': 32, 'snapshot poll': 8, 'audit verification': 2 } as const;
export type LongCall = keyof typeof MOST_OPEN;

/** Gives a call's place back. Harmless when called again. */
export type Leave = () => void;

/** Counts the calls that stay open, by who makes them, so that one caller cannot take what all share. */
export class OpenCalls {
  readonly #counts = new Map<string, number>();

  /** Refuses with `too_many_open_calls`. */
  enter(kind: LongCall, caller: string): Result<Leave, ApiError> {
    const key = `${kind} ${caller}`;
    const open = this.#counts.get(key) ?? 0;
    if (open >= MOST_OPEN[kind]) {
      const message = `you have ${open} of this kind open already (${kind}): end one of them, or wait until it ends`;
      return err(apiError('too_many_open_calls', message));
    }
    this.#counts.set(key, open + 1);
    let left = false;
    return ok(() => {
      if (!left) this.#leave(key);
      left = true;
    });
  }

  #leave(key: string): void {
    const open = (this.#counts.get(key) ?? 1) - 1;
    if (open === 0) this.#counts.delete(key);
    else this.#counts.set(key, open);
  }
}
