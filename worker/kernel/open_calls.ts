import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';

/**
 * How many calls of a kind a caller may have open at once, because each polls the database, and how long a call lasts
 * at most. After that its slot is free again, even if the runtime does not report that the client disconnected.
 */
const KINDS = {
  'audit stream': { most: 32, lastsMs: 16 * 60_000 },
  'snapshot poll': { most: 8, lastsMs: 60_000 },
  'approval wait': { most: 64, lastsMs: 60_000 },
  'mcp request': { most: 32, lastsMs: 5 * 60_000 },
  'audit export': { most: 4, lastsMs: 60 * 60_000 },
  'audit verification': { most: 2, lastsMs: 10 * 60_000 },
  'audit pruning': { most: 2, lastsMs: 10 * 60_000 },
} as const;
type LongCall = keyof typeof KINDS;

/** Frees a call's slot. May be called more than once. */
export type Leave = () => void;

/** Limits the long-lived calls of each caller, so that one caller cannot use up what all share. */
export class OpenCalls {
  readonly #now: () => number;
  /** The latest end of each open call, by kind and caller. */
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
    if (open.size >= KINDS[kind].most) return err(tooManyError(kind, open.size));
    const call = { endMs: now + KINDS[kind].lastsMs };
    this.#ends.set(key, open.add(call));
    return ok(() => {
      open.delete(call);
      if (open.size === 0 && this.#ends.get(key) === open) this.#ends.delete(key);
    });
  }

  /** Takes a slot while `call` runs. Refuses with `too_many_open_calls`. */
  async holdWhile<T>(
    kind: LongCall,
    caller: string,
    call: () => Promise<Result<T, ApiError>>,
  ): Promise<Result<T, ApiError>> {
    const leave = this.enter(kind, caller);
    if (!leave.ok) return leave;
    try {
      return await call();
    } finally {
      leave.value();
    }
  }
}

function tooManyError(kind: LongCall, open: number): ApiError {
  const message = `you have ${open} open calls of this kind already (${kind}): close one, or wait until one ends`;
  return apiError('too_many_open_calls', message);
}
