import { ANSWERED_LOCALLY, type AuditEvent } from '../model/audit_event.ts';
import { REQUEST_DECISIONS, type RequestDecision } from './request_decision.ts';

/** Requests of one minute and one outcome. */
export interface RequestMinute {
  /** Minutes since 1970, in UTC. */
  readonly minute: number;
  readonly decision: RequestDecision;
  readonly requests: number;
}

/** How long minutes are kept, and how old an event may be that still counts: a sidecar sends what it recorded while it was offline. */
export const KEPT_MINUTES = 24 * 60;
/** Clocks of machines differ. */
const MOST_AHEAD_MINUTES = 1;
/** A refusal may stand for several, as its sidecar says; one event cannot fill the chart, or overflow the sum. */
const MOST_REQUESTS = 1_000_000;

/**
 * What events add to the requests of each minute. The time and the count of an event are its sidecar's: what is older than
 * {@link KEPT_MINUTES}, or not yet, is left out. A refusal may be summed; what svc answered itself was not sent.
 */
export function countMinutes(
  events: readonly Pick<AuditEvent, 'type' | 'time' | 'data'>[],
  receivedAtMs: number,
): readonly RequestMinute[] {
  const now = Math.floor(receivedAtMs / 60_000);
  const counts = new Map<string, RequestMinute>();
  for (const { type, time, data } of events) {
    const decision = REQUEST_DECISIONS.get(type);
    if (decision === undefined || data['svc.proxy.reason'] === ANSWERED_LOCALLY) continue;
    const minute = Math.floor(Date.parse(time) / 60_000);
    if (!(minute >= now - KEPT_MINUTES && minute <= now + MOST_AHEAD_MINUTES)) continue;
    const stated = decision === 'refused' ? (data['svc.proxy.count'] ?? 1) : 1;
    const key = `${minute} ${decision}`;
    const before = counts.get(key)?.requests ?? 0;
    counts.set(key, { minute, decision, requests: before + Math.min(stated, MOST_REQUESTS) });
  }
  return [...counts.values()];
}
