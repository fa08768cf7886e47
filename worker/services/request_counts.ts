import type { AuditEventType } from '../../shared/model/audit_event.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import type { AuditEventsQuery } from '../../shared/wire/audit_events.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { countByTime } from '../store/audit_events.ts';
import { toFilter } from './audit_log.ts';
import type { Caller } from './caller.ts';
import type { ServiceContext } from './service_context.ts';

/** What may become of a request. */
export const REQUEST_DECISIONS = ['added', 'connector', 'passed', 'refused'] as const;
export type RequestDecision = (typeof REQUEST_DECISIONS)[number];

/** The events that each stand for one request of an agent. */
const DECISIONS: ReadonlyMap<string, RequestDecision> = new Map<AuditEventType, RequestDecision>([
  ['sandbox.proxy.binding_injected', 'added'],
  ['sandbox.proxy.foreign_credential_kept', 'passed'],
  ['sandbox.proxy.passthrough', 'passed'],
  ['sandbox.proxy.rejected', 'refused'],
  ['sandbox.proxy.trust_denied', 'refused'],
  ['connector.proxy.proxied', 'connector'],
  ['connector.proxy.rejected', 'refused'],
]);

const SPANS = 48;
const DAY_MS = 86_400_000;

/** Requests in equal spans of time. */
export interface RequestCounts {
  readonly since: string;
  readonly until: string;
  readonly spanSeconds: number;
  readonly spans: readonly Readonly<Record<RequestDecision, number>>[];
}

/** How many requests there were, by what became of them: in the time that is asked for, else in the last day. */
export async function countRequests(
  context: ServiceContext,
  caller: Caller,
  query: Pick<AuditEventsQuery, 'session' | 'connector' | 'host' | 'since' | 'until'>,
): Promise<Result<RequestCounts, ApiError>> {
  const untilMs = query.until === undefined ? context.clock.now() : Date.parse(query.until);
  const sinceMs = query.since === undefined ? untilMs - DAY_MS : Date.parse(query.since);
  const spanSeconds = Math.max(1, Math.ceil((untilMs - sinceMs) / 1000 / SPANS));
  const since = new Date(Math.floor(sinceMs / 1000) * 1000).toISOString();
  const until = new Date(Math.max(untilMs, sinceMs)).toISOString();
  const { session, connector, host } = query;
  const filter = toFilter(caller, { session, connector, host, since, until, type: [...DECISIONS.keys()].join(',') });
  if (!filter.ok) return filter;
  const rows = await countByTime(context.database, { ...filter.value, since }, spanSeconds);
  const spans = Array.from({ length: SPANS }, () => ({ added: 0, connector: 0, passed: 0, refused: 0 }));
  for (const { span, type, events } of rows) {
    const decision = DECISIONS.get(type);
    const place = spans[Math.min(span, SPANS - 1)];
    if (decision !== undefined && place !== undefined) place[decision] += events;
  }
  return ok({ since, until, spanSeconds, spans });
}
