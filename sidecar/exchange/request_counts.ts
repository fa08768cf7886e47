import { z } from 'zod';
import type { Clock } from '../../shared/model/clock.ts';
import type { HostBinding, RequestLimits } from '../../shared/model/host_binding.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { formatSize } from '../../shared/model/quotas/byte_size.ts';
import { hasLimit } from '../../shared/model/request_limits.ts';
import { counted } from '../../shared/model/sentence.ts';
import { type CountEntries, RollingCount } from './rolling_count.ts';

type LimitedBinding = Pick<HostBinding, 'id' | 'host'> & RequestLimits;

/** What a limit belongs to. */
interface Limited {
  /** The binding's or the session's. */
  readonly id: string;
  readonly limits: RequestLimits;
  /** In the words of a refusal. */
  readonly whose: string;
  readonly fix: string;
}

interface Counts {
  readonly minute: RollingCount;
  readonly day: RollingCount;
  /** Of a day. Stays empty without a limit of bytes. */
  readonly bytes: RollingCount;
}

/** By the id of a binding or a session: the minutes of the last day and what was counted in each. */
const savedDays = z.record(z.string().max(64), z.array(z.tuple([z.int().min(0), z.int().min(1)])).max(1441));

/** What a restart of the sidecar must not forget. Earlier versions have no `bytes`, and read no file that has some. */
const savedCounts = z.strictObject({ version: z.literal(1), days: savedDays, bytes: savedDays.optional() });

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MINUTES_PER_DAY = 1440;

interface CountsOptions {
  readonly clock: Clock;
  /** What the person who started a session allows it; null: no limit. */
  readonly limitsOfSession?: (sessionId: string) => RequestLimits | null;
  /** Called after each count that {@link RequestCounts.save} has to keep. */
  readonly onDayCounted?: () => void;
}

/** Counts the bodies of one request and its reply, as they pass. */
export interface ByteMeter {
  add(bytes: number): void;
  addAll(pieces: readonly Uint8Array[]): void;
}

/**
 * The requests that got a credential on this machine, and their bytes, for each binding with a limit in every session together, and for
 * each session with one for all bindings and operations together; for the day also before a restart (decision 0121).
 */
export class RequestCounts {
  readonly #options: CountsOptions;
  readonly #counts = new Map<string, Counts>();

  constructor(options: CountsOptions) {
    this.#options = options;
  }

  /** Why a request may not get the binding's credential now; null if it may. Counts nothing, so that nobody approves it in vain. */
  refuse(binding: LimitedBinding | null, sessionId: string | null): Refusal | null {
    return this.#refuse(this.#limitsOf(binding, sessionId), this.#options.clock.now());
  }

  /**
   * Counts a request that is about to get the binding's credential; or says why it may not, and then counts nothing. `binding` is null
   * if a client certificate is the only credential, `sessionId` for a call of the host token.
   */
  take(binding: LimitedBinding | null, sessionId: string | null): Refusal | null {
    const limited = this.#limitsOf(binding, sessionId);
    if (limited.length === 0) return null;
    const now = this.#options.clock.now();
    const refused = this.#refuse(limited, now);
    if (refused !== null) return refused;
    for (const { id } of limited) {
      const { minute, day } = this.#countsOf(id, now);
      minute.add(now);
      day.add(now);
    }
    if (limited.some(({ limits }) => limits.requestsPerDay !== undefined)) this.#options.onDayCounted?.();
    return null;
  }

  #addBytes(ids: readonly string[], bytes: number): void {
    if (bytes === 0) return;
    const now = this.#options.clock.now();
    for (const id of ids) this.#countsOf(id, now).bytes.add(now, bytes);
    this.#options.onDayCounted?.();
  }

  /**
   * Counts the bytes of a request that {@link take} has admitted; null if no limit needs them. A limit that is reached refuses the next
   * request and never cuts this one off. The caller counts only what the agent sends and what it is given: the size of
   * anything else, such as a reply before it is decoded, may depend on the credential.
   */
  meter(binding: LimitedBinding | null, sessionId: string | null): ByteMeter | null {
    const ids = this.#limitsOf(binding, sessionId)
      .filter(({ limits }) => limits.bytesPerDay !== undefined)
      .map(({ id }) => id);
    if (ids.length === 0) return null;
    const add = (bytes: number): void => this.#addBytes(ids, bytes);
    return { add, addAll: (pieces) => add(totalBytes(pieces)) };
  }

  /** The text of the state file. What has had no request in the last day is not in it. */
  save(): string {
    const now = this.#options.clock.now();
    this.#forgetOld(now);
    const days = [...this.#counts].map(([id, { day }]) => [id, day.entries(now)] as const);
    const bytes = [...this.#counts].map(([id, counts]) => [id, counts.bytes.entries(now)] as const);
    const moved = bytes.filter(([, entries]) => entries.length > 0);
    const withBytes = moved.length === 0 ? {} : { bytes: Object.fromEntries(moved) };
    return JSON.stringify({ version: 1, days: Object.fromEntries(days), ...withBytes });
  }

  /** Takes up what {@link save} wrote; false if it is not such a text. */
  restore(text: string): boolean {
    const saved = savedCounts.safeParse(parseJson(text));
    if (!saved.success) return false;
    const { days, bytes = {} } = saved.data;
    for (const id of new Set([...Object.keys(days), ...Object.keys(bytes)])) {
      this.#counts.set(id, newCounts(days[id], bytes[id]));
    }
    return true;
  }

  #limitsOf(binding: LimitedBinding | null, sessionId: string | null): readonly Limited[] {
    const session = this.#limitedSession(sessionId);
    if (binding === null || !hasLimit(binding)) return session === null ? NO_LIMITS : [session];
    return session === null ? [limitedBinding(binding)] : [limitedBinding(binding), session];
  }

  #refuse(limited: readonly Limited[], now: number): Refusal | null {
    if (limited.length === 0) return null;
    const waits = limited.flatMap((each) => this.#waitsOf(each, now));
    const longest = waits.reduce((most, each) => (each.ms > most.ms ? each : most));
    return longest.ms > 0 ? overLimit(longest) : null;
  }

  /** Made anew, it also makes room: the counts of sessions that ended go with their day. */
  #countsOf(id: string, now: number): Counts {
    const known = this.#counts.get(id);
    if (known !== undefined) return known;
    this.#forgetOld(now);
    const made = newCounts();
    this.#counts.set(id, made);
    return made;
  }

  #forgetOld(now: number): void {
    for (const [id, { day, bytes }] of this.#counts) {
      if (day.total(now) === 0 && bytes.total(now) === 0) this.#counts.delete(id);
    }
  }

  #limitedSession(id: string | null): Limited | null {
    const limits = id === null ? null : (this.#options.limitsOfSession?.(id) ?? null);
    if (id === null || limits === null || !hasLimit(limits)) return null;
    return { id, limits, whose: 'this session', fix: 'whoever starts the next one can allow more' };
  }

  #waitsOf({ id, limits, whose, fix }: Limited, now: number): readonly Wait[] {
    const { minute, day, bytes } = this.#counts.get(id) ?? NO_REQUESTS;
    return [
      { limit: limits.requestsPerMinute, words: requestWords, per: 'minute', count: minute },
      { limit: limits.requestsPerDay, words: requestWords, per: 'day', count: day },
      { limit: limits.bytesPerDay, words: formatSize, per: 'day', count: bytes },
    ].flatMap(({ limit, words, per, count }) =>
      limit === undefined ? [] : [{ whose, fix, limit, words, per, ms: count.waitFor(limit, now) }],
    );
  }
}

interface Wait extends Pick<Limited, 'whose' | 'fix'> {
  readonly limit: number;
  readonly words: (limit: number) => string;
  readonly per: string;
  readonly ms: number;
}

function requestWords(limit: number): string {
  return counted(limit, 'request');
}

function totalBytes(pieces: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

function limitedBinding(binding: LimitedBinding): Limited {
  const { id, host } = binding;
  return {
    id,
    limits: binding,
    whose: `the binding of ${host}`,
    fix: `a person can change it: svc binding limit ${host}`,
  };
}

const NO_LIMITS: readonly Limited[] = [];
const NO_REQUESTS = newCounts();

function newCounts(days: CountEntries = [], bytes: CountEntries = []): Counts {
  return {
    minute: new RollingCount(SECOND_MS, 60),
    day: new RollingCount(MINUTE_MS, MINUTES_PER_DAY, days),
    bytes: new RollingCount(MINUTE_MS, MINUTES_PER_DAY, bytes),
  };
}

function overLimit({ whose, fix, limit, words, per, ms }: Wait): Refusal {
  const seconds = Math.ceil(ms / SECOND_MS);
  const message = `${whose} allows ${words(limit)} a ${per} on this machine, and the next request in ${seconds} s; ${fix}`;
  return { ...refusal('request_limit_reached', message), retryAfterSeconds: seconds };
}
