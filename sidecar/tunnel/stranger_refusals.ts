import type { UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import type { AuditSink } from '../ports.ts';

/** The number of refusals per minute that get their own event. */
const MOST_SINGLE = 60;
const PERIOD_MS = 60_000;

/**
 * Records refusals of clients that have not authenticated. Anyone who reaches the proxy can cause them, so they must not
 * fill the audit spool: the first ones of a minute are recorded individually, the others as one event per reason, with their
 * count.
 */
export class StrangerRefusals {
  readonly #audit: Pick<AuditSink, 'record'>;
  #single = 0;
  #summed = new Map<string, { readonly event: UnstampedEvent; count: number }>();
  #period: NodeJS.Timeout | null = null;

  constructor(audit: Pick<AuditSink, 'record'>) {
    this.#audit = audit;
  }

  record(event: UnstampedEvent): void {
    this.#period ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    this.#single += 1;
    if (this.#single <= MOST_SINGLE) this.#audit.record(event);
    else this.#sum(event);
  }

  /** Records the summaries so far, and starts again. */
  flush(): void {
    if (this.#period !== null) clearTimeout(this.#period);
    this.#period = null;
    this.#single = 0;
    const summed = this.#summed;
    this.#summed = new Map();
    for (const { event, count } of summed.values()) this.#audit.record(summaryOf(event, count));
  }

  #sum(event: UnstampedEvent): void {
    const reason = event.data['svc.proxy.reason'] ?? '';
    const sum = this.#summed.get(reason);
    if (sum === undefined) this.#summed.set(reason, { event, count: 1 });
    else sum.count += 1;
  }
}

/** One event for several alike, whose methods may differ. */
export function summaryOf(event: UnstampedEvent, count: number): UnstampedEvent {
  const { 'svc.proxy.method': _, ...data } = event.data;
  return { ...event, data: { ...data, 'svc.proxy.count': count } };
}
