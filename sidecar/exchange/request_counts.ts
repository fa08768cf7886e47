import { z } from 'zod';
import type { Clock } from '../../shared/model/clock.ts';
import type { HostBinding, RequestLimits } from '../../shared/model/host_binding.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { RollingCount } from './rolling_count.ts';
import { counted } from '../../shared/model/sentence.ts';

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
}

/** What a restart of the sidecar must not forget: by the id of a binding or a session, the minutes of the last day and their requests. */
const savedCounts = z.strictObject({
  version: z.literal(1),
  days: z.record(z.string().max(64), z.array(z.tuple([z.int().min(0), z.int().min(1)])).max(1441)),
});

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MINUTES_PER_DAY = 1440;

interface CountsOptions {
  readonly clock: Clock;
  /** What the person who started a session allows it; null: no limit. */
  readonly limitsOfSession?: (sessionId: string) => RequestLimits | null;
  /** Called after each request that {@link RequestCounts.save} has to keep. */
  readonly onDayCounted?: () => void;
}

/**
 * The requests that got a credential on this machine, for each binding with a limit in every session together, and for each session
 * with one for all bindings and operations together; for the day also before a restart (decision 0121).
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

  /** The text of the state file. What has had no request in the last day is not in it. */
  save(): string {
    const now = this.#options.clock.now();
    this.#forgetOld(now);
    const days = [...this.#counts].map(([id, { day }]) => [id, day.entries(now)] as const);
    return JSON.stringify({ version: 1, days: Object.fromEntries(days) });
  }

  /** Takes up what {@link save} wrote; false if it is not such a text. */
  restore(text: string): boolean {
    const saved = savedCounts.safeParse(parseJson(text));
    if (!saved.success) return false;
    for (const [id, entries] of Object.entries(saved.data.days)) this.#counts.set(id, newCounts(entries));
    return true;
  }

  #limitsOf(binding: LimitedBinding | null, sessionId: string | null): readonly Limited[] {
    const session = this.#limitedSession(sessionId);
    if (binding === null || !isLimit(binding)) return session === null ? NO_LIMITS : [session];
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
    for (const [id, { day }] of this.#counts) if (day.total(now) === 0) this.#counts.delete(id);
  }

  #limitedSession(id: string | null): Limited | null {
    const limits = id === null ? null : (this.#options.limitsOfSession?.(id) ?? null);
    if (id === null || limits === null || !isLimit(limits)) return null;
    return { id, limits, whose: 'this session', fix: 'whoever starts the next one can allow more' };
  }

  #waitsOf({ id, limits, whose, fix }: Limited, now: number): readonly Wait[] {
    const { minute, day } = this.#counts.get(id) ?? NO_REQUESTS;
    return [
      { limit: limits.requestsPerMinute, per: 'minute', count: minute },
      { limit: limits.requestsPerDay, per: 'day', count: day },
    ].flatMap(({ limit, per, count }) =>
      limit === undefined ? [] : [{ whose, fix, limit, per, ms: count.waitFor(limit, now) }],
    );
  }
}

interface Wait extends Pick<Limited, 'whose' | 'fix'> {
  readonly limit: number;
  readonly per: string;
  readonly ms: number;
}

function isLimit({ requestsPerMinute, requestsPerDay }: RequestLimits): boolean {
  return requestsPerMinute !== undefined || requestsPerDay !== undefined;
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

function newCounts(days: ConstructorParameters<typeof RollingCount>[2] = []): Counts {
  return { minute: new RollingCount(SECOND_MS, 60), day: new RollingCount(MINUTE_MS, MINUTES_PER_DAY, days) };
}

function overLimit({ whose, fix, limit, per, ms }: Wait): Refusal {
  const seconds = Math.ceil(ms / SECOND_MS);
  const message = `${whose} allows ${counted(limit, 'request')} a ${per} on this machine, and the next one in ${seconds} s; ${fix}`;
  return { ...refusal('request_limit_reached', message), retryAfterSeconds: seconds };
}
