const KEPT_MS = 24 * 3600_000;
/** What is missing is asked for again after this time. */
const MISSING_MS = 3600_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_KEPT = 2_000;
const MINUTE_MS = 60_000;

interface KeptReply<T> {
  /** Null if there is nothing. */
  readonly value: T | null;
  /** False if nobody was asked, or the server could not say. */
  readonly isKnown: boolean;
}

/** What strangers' servers replied, by URL, in memory. */
export class KeptReplies<T> {
  readonly #kept = new Map<string, KeptReply<T> & { readonly untilMs: number }>();
  readonly #sizeOf: (value: T) => number;
  readonly #mostCalls: number;
  #bytes = 0;
  #minute = { begunMs: 0, calls: 0 };

  /** `mostCalls`: in a minute, for all callers. */
  constructor(sizeOf: (value: T) => number, mostCalls: number) {
    this.#sizeOf = sizeOf;
    this.#mostCalls = mostCalls;
  }

  /** What was noted; null if nothing was. */
  find(url: string, nowMs: number): KeptReply<T> | null {
    const kept = this.#kept.get(url);
    return kept !== undefined && nowMs < kept.untilMs ? kept : null;
  }

  note(url: string, value: T | null, nowMs: number): void {
    this.#keep(url, { value, isKnown: true, untilMs: nowMs + (value === null ? MISSING_MS : KEPT_MS) });
  }

  /** There are too many calls now, or the server cannot say: it is looked for again in a minute. */
  postpone(url: string, nowMs: number): void {
    this.#keep(url, { value: null, isKnown: false, untilMs: nowMs + MINUTE_MS });
  }

  #keep(url: string, reply: KeptReply<T> & { readonly untilMs: number }): void {
    this.#drop(url);
    this.#kept.set(url, reply);
    this.#bytes += reply.value === null ? 0 : this.#sizeOf(reply.value);
    for (const oldest of this.#kept.keys()) {
      if ((this.#bytes <= MAX_BYTES && this.#kept.size <= MAX_KEPT) || oldest === url) break;
      this.#drop(oldest);
    }
  }

  /** Counts a call; false if there were too many in this minute. */
  mayCall(nowMs: number): boolean {
    if (nowMs - this.#minute.begunMs >= MINUTE_MS) this.#minute = { begunMs: nowMs, calls: 0 };
    this.#minute.calls += 1;
    return this.#minute.calls <= this.#mostCalls;
  }

  #drop(url: string): void {
    const value = this.#kept.get(url)?.value ?? null;
    this.#bytes -= value === null ? 0 : this.#sizeOf(value);
    this.#kept.delete(url);
  }
}
