import type { ApprovalRecord } from '../../../shared/wire/approvals.ts';
import { type ApprovalRow, findApproval, listApprovals, listDecidedOfKind, nameAskers } from '../../store/approvals.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { toRecord, viewerOf } from './approval_rows.ts';
import { type ApprovalStanding, standingsOf } from './approval_standings.ts';
import { expireOverdue } from './approval_ends.ts';
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
  /** The names of those who have approved it under rules, by their users' ids. */
  readonly names: ReadonlyMap<string, string>;
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
  const page = { state: 'pending' as const, before: null, limit, now: nowText(context) };
  return describeRows(context, caller, await listApprovals(context.database, viewerOf(caller), page));
}

/** One approval that waits; null if it does not wait any more, or the caller may not see it. */
export async function describePending(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<PendingApproval | null> {
  const row = await findApproval(context.database, viewerOf(caller), { id, now: nowText(context) });
  const [described] = row?.state === 'pending' ? await describeRows(context, caller, [row]) : [];
  return described ?? null;
}

async function describeRows(
  context: ServiceContext,
  caller: Caller,
  rows: readonly ApprovalRow[],
): Promise<readonly PendingApproval[]> {
  const { database } = context;
  const standings = await standingsOf(context, caller, rows);
  const voters = [...standings.values()].flatMap(({ votes }) =>
    votes.map(({ userId }) => ({ userId, sidecarId: null })),
  );
  const names = await nameAskers(database, [...rows, ...voters]);
  const earlier = new Map<string, readonly EarlierDecision[]>();
  for (const row of rows) {
    if (earlier.has(kindOf(row))) continue;
    const decided = await listDecidedOfKind(database, viewerOf(caller), row, MOST_EARLIER);
    earlier.set(kindOf(row), decided.map(toDecision));
  }
  return rows.toSorted(byWaiting).map((row) => ({
    record: toRecord(row, standings.get(row.id)),
    names: names.people,
    person: names.people.get(row.userId) ?? row.userId,
    sidecar: row.sidecarId === null ? null : (names.sidecars.get(row.sidecarId) ?? row.sidecarId),
    mayView: row.userId === caller.userId,
    mayGrant: mayGrant(caller, row, standings.get(row.id)),
    earlier: earlier.get(kindOf(row)) ?? [],
  }));
}

function byWaiting(a: ApprovalRow, b: ApprovalRow): number {
  const [ofA, ofB] = [a, b].map(({ id, heldUntil, requestedAt }) => `${heldUntil ?? requestedAt} ${id}`);
  return (ofA ?? '') < (ofB ?? '') ? -1 : 1;
}

function mayGrant(caller: Caller, row: ApprovalRow, standing: ApprovalStanding | undefined): boolean {
  return standing?.mayApprove === true && grantProblem(caller, row, standing) === null;
}

const kindOf = ({ subjectId, action }: ApprovalRow): string => JSON.stringify([subjectId, action]);

function toDecision({ state, decidedAt, requestedAt }: ApprovalRow): EarlierDecision {
  return { decision: state === 'denied' ? 'denied' : 'approved', at: decidedAt ?? requestedAt };
}
