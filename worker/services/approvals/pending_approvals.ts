import type { ApprovalRecord } from '../../../shared/wire/approvals.ts';
import { type ApprovalRow, listApprovals, listDecidedOfKind, nameAskers } from '../../store/approvals.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { toRecord, viewerOf } from './approval_rows.ts';
import { expireOverdue } from './approvals.ts';
import { grantProblem } from './grants.ts';

/** A pending approval with what helps to decide it. */
export interface PendingApproval {
  readonly record: ApprovalRecord;
  /** The user whose agent asks. */
  readonly person: string;
  /** The machine's name; null for a request that came through no sidecar. */
  readonly sidecar: string | null;
  /** True if the caller may see the whole request. */
  readonly mayView: boolean;
  /** True if the caller may also allow further requests. */
  readonly mayGrant: boolean;
  /** The latest decisions about the same operation or tool, newest first. */
  readonly earlier: readonly EarlierDecision[];
}

export interface EarlierDecision {
  readonly decision: 'approved' | 'denied';
  readonly at: string;
}

const MOST_EARLIER = 5;

/**
 * The approvals that wait for the caller's decision: the newest `limit`. Who has waited longest comes first, and what is asked
 * again goes to the end, so that a new one moves none of the others.
 */
export async function listPendingApprovals(
  context: ServiceContext,
  caller: Caller,
  limit: number,
): Promise<readonly PendingApproval[]> {
  await expireOverdue(context, caller.enterpriseId);
  const { database } = context;
  const rows = await listApprovals(database, viewerOf(caller), { state: 'pending', before: null, limit });
  const names = await nameAskers(database, rows);
  const earlier = new Map<string, readonly EarlierDecision[]>();
  for (const row of rows) {
    if (earlier.has(kindOf(row))) continue;
    const decided = await listDecidedOfKind(database, viewerOf(caller), row, MOST_EARLIER);
    earlier.set(kindOf(row), decided.map(toDecision));
  }
  return rows.toSorted(byWaiting).map((row) => ({
    record: toRecord(row),
    person: names.people.get(row.userId) ?? row.userId,
    sidecar: row.sidecarId === null ? null : (names.sidecars.get(row.sidecarId) ?? row.sidecarId),
    mayView: row.userId === caller.userId,
    mayGrant: grantProblem(caller, row) === null,
    earlier: earlier.get(kindOf(row)) ?? [],
  }));
}

function byWaiting(a: ApprovalRow, b: ApprovalRow): number {
  const [ofA, ofB] = [a, b].map(({ id, heldUntil, requestedAt }) => `${heldUntil ?? requestedAt} ${id}`);
  return (ofA ?? '') < (ofB ?? '') ? -1 : 1;
}

const kindOf = ({ subjectId, action }: ApprovalRow): string => JSON.stringify([subjectId, action]);

function toDecision({ state, decidedAt, requestedAt }: ApprovalRow): EarlierDecision {
  return { decision: state === 'denied' ? 'denied' : 'approved', at: decidedAt ?? requestedAt };
}
