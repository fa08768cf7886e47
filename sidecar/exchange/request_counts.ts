import { z } from 'zod';
import type { Clock } from '../../shared/model/clock.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { parseJson } from '../../shared/model/json.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { RollingCount } from './rolling_count.ts';

type Limited = Pick<HostBinding, 'id' | 'host' | 'requestsPerMinute' | 'requestsPerDay'>;

interface Counts {
  readonly minute: RollingCount;
  readonly day: RollingCount;
}

/** What a restart of the sidecar must not forget: by the binding's id, the minutes of the last day and their requests. */
const savedCounts = z.strictObject({
  version: z.literal(1),
  days: z.record(z.string().max(64), z.array(z.tuple([z.int().min(0), z.int().min(1)])).max(1441)),
});

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MINUTES_PER_DAY = 1440;

/**
 * The requests that got the credential of a binding with a limit, on this machine: in every session together, and for the day
 * also before a restart (decision 0121).
 */
export class RequestCounts {
  readonly #clock: Clock;
  readonly #onDayCounted: () => void;
  readonly #bindings = new Map<string, Counts>();

  /** `onDayCounted` is called after each request that {@link save} has to keep. */
  constructor(clock: Clock, onDayCounted: () => void = () => undefined) {
    this.#clock = clock;
    this.#onDayCounted = onDayCounted;
  }

  /** Counts a request that is about to get the credential; or says why it may not, and then counts nothing. */
  take({ id, host, requestsPerMinute, requestsPerDay }: Limited): Refusal | null {
    if (requestsPerMinute === undefined && requestsPerDay === undefined) return null;
    const now = this.#clock.now();
    const { minute, day } = this.#countsOf(id);
    const waits = [
      { limit: requestsPerMinute, per: 'minute', count: minute },
      { limit: requestsPerDay, per: 'day', count: day },
    ].map(({ limit, per, count }) => ({ limit, per, ms: limit === undefined ? 0 : count.waitFor(limit, now) }));
    const longest = waits.reduce((most, each) => (each.ms > most.ms ? each : most));
    if (longest.ms > 0) return overLimit(host, longest);
    minute.add(now);
    day.add(now);
    if (requestsPerDay !== undefined) this.#onDayCounted();
    return null;
  }

  /** The text of the state file. Bindings without a request in the last day are not in it. */
  save(): string {
    const now = this.#clock.now();
    const days = [...this.#bindings].map(([id, { day }]) => [id, day.entries(now)] as const);
    const kept = Object.fromEntries(days.filter(([, entries]) => entries.length > 0));
    return JSON.stringify({ version: 1, days: kept });
  }

  /** Takes up what {@link save} wrote; false if it is not such a text. */
  restore(text: string): boolean {
    const saved = savedCounts.safeParse(parseJson(text));
    if (!saved.success) return false;
    for (const [id, entries] of Object.entries(saved.data.days)) this.#bindings.set(id, newCounts(entries));
    return true;
  }

  #countsOf(id: string): Counts {
    const known = this.#bindings.get(id) ?? newCounts();
    this.#bindings.set(id, known);
    return known;
  }
}

function newCounts(days: ConstructorParameters<typeof RollingCount>[2] = []): Counts {
  return { minute: new RollingCount(SECOND_MS, 60), day: new RollingCount(MINUTE_MS, MINUTES_PER_DAY, days) };
}

function overLimit(
  host: string,
  { limit, per, ms }: { readonly limit: number | undefined; readonly per: string; readonly ms: number },
): Refusal {
  const seconds = Math.ceil(ms / SECOND_MS);
  const message = `the binding of ${host} allows ${limit} requests a ${per} on this machine, and the next one in ${seconds} s; a person can change it: svc binding limit ${host}`;
  return { ...refusal('request_limit_reached', message), retryAfterSeconds: seconds };
}
