import { ok, type Result } from '../../../shared/model/result.ts';
import { REQUEST_DECISIONS, type RequestDecision } from '../../../shared/report/request_decision.ts';
import type { AuditEventsQuery } from '../../../shared/wire/audit_events.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { countByTime } from '../../store/audit/audit_events.ts';
import { listRequestMinutes } from '../../store/audit/request_minutes.ts';
import { type FilterQuery, toFilter } from './audit_log.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

const MOST_SPANS = 48;
/** Lengths that are easy to read on a time axis. */
const SPAN_SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Requests in equal spans that begin at round times. The first and the last span may be covered only in part. */
export interface RequestCounts {
  readonly since: string;
  readonly until: string;
  /** Start of the first span. */
  readonly begins: string;
  readonly spanSeconds: number;
  readonly spans: readonly Readonly<Record<RequestDecision, number>>[];
}

/** Counts requests by outcome over time, in the requested period or the last day. */
export async function countRequests(
  context: ServiceContext,
  caller: Caller,
  query: Omit<FilterQuery, 'type'>,
): Promise<Result<RequestCounts, ApiError>> {
  const { sinceMs, untilMs, spanMs } = timeOf(context.clock.now(), query);
  const beginsMs = Math.floor(sinceMs / spanMs) * spanMs;
  const length = Math.max(1, Math.ceil((untilMs - beginsMs) / spanMs));
  const spans = Array.from({ length }, () => ({ added: 0, connector: 0, passed: 0, refused: 0 }));
  const since = new Date(sinceMs).toISOString();
  const until = new Date(untilMs).toISOString();
  const begins = new Date(beginsMs).toISOString();
  const counted = { since, until, begins, spanSeconds: spanMs / 1000, spans };
  if (Object.values(query).every((given) => given === undefined)) {
    // All of the last day, whose minutes are counted already: a million events take seconds.
    const rows = await listRequestMinutes(context.database, caller.enterpriseId, beginsMs / MINUTE_MS);
    for (const { minute, decision, requests } of rows) {
      const counts = spans[Math.floor((minute * MINUTE_MS - beginsMs) / spanMs)];
      if (counts !== undefined) counts[decision] += requests;
    }
    return ok(counted);
  }
  const filter = toFilter(caller, { ...query, since, until, type: [...REQUEST_DECISIONS.keys()].join(',') });
  if (!filter.ok) return filter;
  const rows = await countByTime(context.database, filter.value, { begins, spanSeconds: spanMs / 1000 });
  for (const { span, type, answered, events } of rows) {
    // What svc answered itself was not sent, with or without a credential.
    const decision = answered ? undefined : REQUEST_DECISIONS.get(type);
    const counts = spans[span];
    if (decision !== undefined && counts !== undefined) counts[decision] += events;
  }
  return ok(counted);
}

/**
 * The requested period, by default the last day up to the next round time, and the shortest span that gives few enough
 * spans.
 */
function timeOf(nowMs: number, { since, until }: Pick<AuditEventsQuery, 'since' | 'until'>) {
  const endMs = until === undefined ? nowMs : Date.parse(until);
  const startMs = since === undefined ? endMs - DAY_MS : Date.parse(since);
  const leastSeconds = Math.max(0, endMs - startMs) / 1000 / MOST_SPANS;
  const longest = Math.ceil(leastSeconds / 86_400) * 86_400;
  const spanMs = (SPAN_SECONDS.find((seconds) => seconds >= leastSeconds) ?? longest) * 1000;
  const untilMs = until === undefined ? Math.ceil(endMs / spanMs) * spanMs : Math.max(endMs, startMs);
  return { sinceMs: since === undefined ? untilMs - DAY_MS : startMs, untilMs, spanMs };
}
