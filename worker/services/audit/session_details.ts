import { err, ok, type Result } from '../../../shared/model/result.ts';
import { type SessionSummary, summariseSession } from '../../../shared/report/session_summary.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import { type Caller, mayActAs } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { listSessionNames } from '../../store/names.ts';
import { findSidecar } from '../../store/sidecars.ts';
import { listAuditPage } from './audit_log.ts';
import { describeNames } from './names.ts';

/** A session as the audit log knows it. */
export interface SessionDetails {
  readonly id: string;
  /** What its launcher called it, such as the agent's name; null if that is not known. */
  readonly name: string | null;
  readonly folder: string | null;
  /** The machine and the person that it ran for. */
  readonly machine: { readonly id: string; readonly name: string | null } | null;
  readonly person: { readonly id: string; readonly name: string | null } | null;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly summary: SessionSummary;
  /** The summary is of the newest events only. */
  readonly isCut: boolean;
}

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
  const machineId = items.find(({ sidecar_id: sidecar }) => sidecar !== null)?.sidecar_id ?? null;
  const machine = machineId === null ? null : await findSidecar(context.database, machineId);
  const personId = machine?.enterpriseId === caller.enterpriseId ? machine.userId : null;
  const nameOf = await describeNames(
    context,
    caller,
    [machineId, personId].filter((each) => each !== null),
  );
  const told = (await listSessionNames(context.database, caller.enterpriseId, [id]))[0];
  const mayKnow = told !== undefined && (told.userId === caller.userId || mayActAs(caller, 'admin'));
  return ok({
    id,
    name: mayKnow ? told.name : null,
    folder: mayKnow ? told.folder : null,
    machine: machineId === null ? null : { id: machineId, name: nameOf(machineId) },
    person: personId === null ? null : { id: personId, name: nameOf(personId) },
    firstAt: oldest.time,
    lastAt: newest.time,
    summary: summariseSession(items),
    isCut: next !== null,
  });
}
