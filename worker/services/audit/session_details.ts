import { err, ok, type Result } from '../../../shared/model/result.ts';
import { listPlanSteps, type PlanStep } from '../../../shared/report/session_list.ts';
import { type SessionSummary, summariseSession } from '../../../shared/report/session_summary.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findSidecar } from '../../store/sidecars.ts';
import { listAuditPage } from './audit_log.ts';
import { describeNames, describeSessions } from './names.ts';

/** A session as the audit log knows it. */
export interface SessionDetails {
  readonly id: string;
  /** What its launcher called it, such as the agent's name; null if that is not known. */
  readonly name: string | null;
  readonly folder: string | null;
  /**
   * The machines whose sidecars reported events of this id, each with its person. A sidecar names its sessions itself, so an id
   * of several machines is of several sessions, or one of them claims another's.
   */
  readonly machines: readonly SessionMachine[];
  readonly firstAt: string;
  readonly lastAt: string;
  readonly summary: SessionSummary;
  /** Empty if it ran no plan. */
  readonly steps: readonly PlanStep[];
  /** The summary is of the newest events only. */
  readonly isCut: boolean;
}

interface SessionMachine {
  readonly id: string;
  readonly name: string | null;
  readonly person: { readonly id: string; readonly name: string | null } | null;
}

const MOST_MACHINES = 5;

/** A session's newest events, summed up. Refuses with `not_found`. */
export async function describeSession(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<SessionDetails, ApiError>> {
  const page = await listAuditPage(context, caller, { session: id, limit: MAX_PAGE });
  if (!page.ok) return page;
  const { items, next_cursor: next } = page.value;
  const [newest, oldest] = [items[0], items.at(-1)];
  if (newest === undefined || oldest === undefined) {
    return err(apiError('not_found', 'no event of this session is in the audit log: it may have been removed'));
  }
  const machines = await describeMachines(context, caller, [
    ...new Set(items.flatMap((item) => item.sidecar_id ?? [])),
  ]);
  const described = (await describeSessions(context, caller, items)).get(id);
  return ok({
    id,
    name: described?.name ?? null,
    folder: described?.folder ?? null,
    machines,
    firstAt: oldest.time,
    lastAt: newest.time,
    summary: summariseSession(items),
    steps: listPlanSteps(items),
    isCut: next !== null,
  });
}

async function describeMachines(
  context: ServiceContext,
  caller: Caller,
  ids: readonly string[],
): Promise<readonly SessionMachine[]> {
  const found = await Promise.all(
    ids.slice(0, MOST_MACHINES).map(async (id) => {
      const sidecar = await findSidecar(context.database, id);
      return { id, userId: sidecar?.enterpriseId === caller.enterpriseId ? sidecar.userId : null };
    }),
  );
  const nameOf = await describeNames(
    context,
    caller,
    found.flatMap(({ id, userId }) => (userId === null ? [id] : [id, userId])),
  );
  return found.map(({ id, userId }) => {
    return { id, name: nameOf(id), person: userId === null ? null : { id: userId, name: nameOf(userId) } };
  });
}
