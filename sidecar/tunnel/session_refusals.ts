import type { UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import type { AuditSink } from '../ports.ts';
import { summaryOf } from './stranger_refusals.ts';

const PERIOD_MS = 60_000;
/** The number of hosts per session and minute that get events of their own. */
const MOST_HOSTS = 100;

interface Sum {
  readonly event: UnstampedEvent;
  count: number;
}

/**
 * Records what ends before a request: refused CONNECTs, and tunnels without a TLS handshake. Such attempts cost an agent next to
 * nothing, so they must not fill the audit spool. The first of a minute for a session, reason and host is recorded at once, the
 * others of that minute as one event with their count. After {@link MOST_HOSTS} of these a session has one event per reason
 * for all other hosts together, without a host.
 */
export class SessionRefusals {
  readonly #audit: Pick<AuditSink, 'record'>;
  readonly #sums = new Map<string, Map<string, Sum>>();
  #period: NodeJS.Timeout | null = null;

  constructor(audit: Pick<AuditSink, 'record'>) {
    this.#audit = audit;
  }

  record(sessionId: string, event: UnstampedEvent): void {
    this.#period ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    const sums = this.#sums.get(sessionId) ?? new Map<string, Sum>();
    this.#sums.set(sessionId, sums);
    const known = sums.get(keyOf(event));
    if (known !== undefined) known.count += 1;
    else if (sums.size >= MOST_HOSTS) addOther(sums, withoutHost(event));
    else {
      sums.set(keyOf(event), { event, count: 0 });
      this.#audit.record(event);
    }
  }

  /** Records the summaries of a session that has ended, so that they are not later than its end. */
  flushSession(sessionId: string): void {
    const sums = this.#sums.get(sessionId);
    this.#sums.delete(sessionId);
    for (const { event, count } of sums?.values() ?? []) {
      if (count > 0) this.#audit.record(summaryOf(event, count));
    }
  }

  /** Records the summaries of all sessions, and starts again. */
  flush(): void {
    if (this.#period !== null) clearTimeout(this.#period);
    this.#period = null;
    for (const sessionId of this.#sums.keys()) this.flushSession(sessionId);
  }
}

function addOther(sums: Map<string, Sum>, event: UnstampedEvent): void {
  const known = sums.get(keyOf(event));
  if (known === undefined) sums.set(keyOf(event), { event, count: 1 });
  else known.count += 1;
}

function withoutHost(event: UnstampedEvent): UnstampedEvent {
  const { 'svc.proxy.upstream.host': _, ...data } = event.data;
  return { ...event, data };
}

/** The parts that a summary keeps, so that it counts only what is alike. */
function keyOf({ type, data }: UnstampedEvent): string {
  return JSON.stringify([type, data['svc.proxy.reason'], data['svc.step.id'], data['svc.proxy.upstream.host']]);
}
