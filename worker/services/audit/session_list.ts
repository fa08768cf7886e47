import { ok, type Result } from '../../../shared/model/result.ts';
import {
  type ListedSession,
  listPlanSteps,
  listSessionsOf,
  type PlanStep,
} from '../../../shared/report/session_list.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listAuditPage } from './audit_log.ts';
import { describeNames, type NameOf } from './names.ts';

/** The sessions of some events of the log: a session has its newest event among them. */
export interface SessionList<Item> {
  readonly items: readonly Item[];
  readonly nameOf: NameOf;
  /** How many events were read. */
  readonly read: number;
  /** Where older ones begin; null if there are none. */
  readonly nextCursor: string | null;
}

/** Pages that are read for a list: the log has no index of sessions, and a session may have any number of events. */
const PAGES_READ = 2;
const OF_SESSIONS = 'sandbox.,connector.,mcp.,flightplan.';

/** The sessions of the newest events before a cursor. Refuses with `invalid_cursor`. */
export async function listSessions(
  context: ServiceContext,
  caller: Caller,
  cursor: string | undefined,
): Promise<Result<SessionList<ListedSession>, ApiError>> {
  const events: StoredAuditEvent[] = [];
  let next: string | null | undefined = cursor;
  for (let pages = 0; pages < PAGES_READ && next !== null; pages += 1) {
    const page = await readPage(context, caller, OF_SESSIONS, next);
    if (!page.ok) return page;
    events.push(...page.value.items);
    next = page.value.next_cursor;
  }
  return listed(context, caller, events, { items: listSessionsOf(events), nextCursor: next ?? null });
}

/** A run of a plan: its session, with the steps that started. */
export interface PlanRun extends ListedSession {
  readonly steps: readonly PlanStep[];
}

/** The runs of plans, the newest first. Refuses with `invalid_cursor`. */
export async function listPlanRuns(
  context: ServiceContext,
  caller: Caller,
  cursor: string | undefined,
): Promise<Result<SessionList<PlanRun>, ApiError>> {
  const page = await readPage(context, caller, 'flightplan.launch.reach', cursor);
  if (!page.ok) return page;
  const { items, next_cursor: nextCursor } = page.value;
  const runs = listSessionsOf(items).map((session) => {
    return { ...session, steps: listPlanSteps(items.filter((event) => event.session_id === session.id)) };
  });
  return listed(context, caller, items, { items: runs, nextCursor });
}

function readPage(context: ServiceContext, caller: Caller, type: string, cursor: string | undefined) {
  return listAuditPage(context, caller, { type, limit: MAX_PAGE, ...(cursor !== undefined && { cursor }) });
}

async function listed<Item extends ListedSession>(
  context: ServiceContext,
  caller: Caller,
  events: readonly StoredAuditEvent[],
  list: Pick<SessionList<Item>, 'items' | 'nextCursor'>,
): Promise<Result<SessionList<Item>, ApiError>> {
  const ids = list.items.flatMap(({ sidecar }) => sidecar ?? []);
  return ok({ ...list, read: events.length, nameOf: await describeNames(context, caller, ids, events) });
}
