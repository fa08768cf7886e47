import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';

/**
 * How many calls of a kind one caller may have open at a time, for each of them looks at the database again and again; and
 * how long one lasts at the most. After that its place is free again, also where a runtime does not tell that a client left.
 */
const KINDS = {
  'audit stream': { most: 32, lastsMs: 16 * 60_000 },
  'snapshot poll': { most: 8, lastsMs: 60_000 },
  'approval wait': { most: 64, lastsMs: 60_000 },
  'audit verification': { most: 2, lastsMs: 10 * 60_000 },
  'audit pruning': { most: 2, lastsMs: 10 * 60_000 },
} as const;
export type LongCall = keyof typeof KINDS;

/** Gives a call's place back. Harmless when called again. */
export type Leave = () => void;

/** Counts the calls that stay open, by who makes them, so that one caller cannot take what all share. */
export class OpenCalls {
  readonly #now: () => number;
  /** When each open call of a kind and caller is over at the latest. */
  readonly #ends = new Map<string, Set<{ readonly endMs: number }>>();

  /** `now`: milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Refuses with `too_many_open_calls`. */
  enter(kind: LongCall, caller: string): Result<Leave, ApiError> {
    const key = `${kind} ${caller}`;
    const now = this.#now();
    const open = this.#ends.get(key) ?? new Set();
    for (const call of open) if (call.endMs <= now) open.delete(call);
    if (open.size >= KINDS[kind].most) return err(tooMany(kind, open.size));
    const call = { endMs: now + KINDS[kind].lastsMs };
    this.#ends.set(key, open.add(call));
    return ok(() => {
      open.delete(call);
      if (open.size === 0 && this.#ends.get(key) === open) this.#ends.delete(key);
    });
  }
}

function tooMany(kind: LongCall, open: number): ApiError {
  const message = `you have ${open} of this kind open already (${kind}): end one of them, or wait until it ends`;
  return apiError('too_many_open_calls', message);
}
