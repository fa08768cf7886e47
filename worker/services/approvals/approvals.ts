import { z } from 'zod';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { APPROVAL_VALID_SECONDS, type ApprovalRecord, type ApprovalState } from '../../../shared/wire/approvals.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { deleteViews } from '../../store/approval_views.ts';
import type { GrantRow } from '../../store/approval_grants.ts';
import {
  type ApprovalRow,
  changeApproval,
  countPending,
  countVisiblePending,
  findApproval,
  findApprovalsOf,
  insertApproval,
  listApprovals,
  useApproved,
} from '../../store/approvals.ts';
import { findOperationEffect, keepVotes } from '../../store/people/approval_rules.ts';
import type { GrantInput } from '../../../shared/wire/approval_grants.ts';
import { expireOverdue } from './approval_ends.ts';
import {
  approvalEvent,
  type AskedRequest,
  type Asker,
  holdEnd,
  newRow,
  ownViewer,
  timeAfterSeconds,
  toRecord,
  viewerOf,
} from './approval_rows.ts';
import { type ApprovalStanding, standingOf, standingsOf } from './approval_standings.ts';
import { countVote, type CountedVote } from './approval_votes.ts';
import { findGrantOf, giveGrant, grantProblem, useGrant } from './grants.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type Change, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { sendPushes } from '../push/send_pushes.ts';
import { sendAlerts } from '../sinks/sink_turn.ts';

/**
 * The fingerprint of a request that a connected MCP client makes: an approval for one client covers no other, which would get
 * what its person allowed the first one.
 */
export function fingerprintFor(client: { readonly connectionId: string } | null, fingerprint: string): string {
  return client === null ? fingerprint : sha256Hex(`${client.connectionId}\n${fingerprint}`);
}

/** Limits the list that a person has to read, if an agent keeps requesting. */
const MOST_PENDING = 200;
/** Keeps the agents of one session from filling the user's whole list. */
const MOST_PENDING_OF_SESSION = 20;
/** How many approvals of one identical request are read. */
const MOST_LOOKED_AT = 20;

/**
 * Requests an approval for one request. `approved`: an approval covers the request and is now used up. `denied` covers
 * identical requests for the same time, so that an agent that tries again does not cause a new question. Otherwise it
 * is pending, either one that waits already or a new one. Refuses with `too_many_approvals`.
 */
export async function askApproval(
  context: ServiceContext,
  asker: Asker,
  request: AskedRequest,
): Promise<Result<ApprovalRow, ApiError>> {
  await expireOverdue(context, asker.enterpriseId);
  return commit(context, controlChain(asker), async () => {
    const { subject, fingerprint } = request;
    const same = { userId: asker.userId, subjectId: subject.subjectId, fingerprint };
    const effect = subject.subject === 'connector' ? await findOperationEffect(context.database, subject) : null;
    const now = nowText(context);
    const rows = await findApprovalsOf(context.database, same, { limit: MOST_LOOKED_AT, now });
    const covering = findCoveringApproval(rows, asker, request, now);
    const isDecided = covering !== null && covering.state !== 'pending';
    if (isDecided) return ok(use(context, asker, covering, request.requestId));
    const row = covering ?? newRow(context, asker, request, effect);
    const grant = await findGrantOf(context, row);
    const isNew = covering === null;
    if (grant !== null) return ok(useGrant(context, { grant, row, isNew }, toUse(asker, request)));
    if (covering !== null) return ok(use(context, asker, covering, request.requestId));
    const full = await fullList(context, asker, request);
    if (full !== null) return err(full);
    const events = [approvalEvent('connector.approval.requested', row, asker.sidecarId ?? asker.userId)];
    const afterwards = () => tellPeople(context, row);
    return ok({ statements: insertApproval(context.database, row), events, afterwards, value: row });
  });
}

function tellPeople(context: ServiceContext, row: ApprovalRow): void {
  context.defer('telling people of an approval', () => sendAlerts(context, row.enterpriseId));
  context.defer('telling browsers of an approval', () => sendPushes(context, row));
}

function toUse(asker: Asker, { requestId }: { readonly requestId: string }) {
  return { requestId, actor: asker.sidecarId ?? asker.userId };
}

/** Why no further request may wait; null if one may. A request that the user runs here has no session; that of an MCP client has its connection. */
async function fullList(
  { database }: ServiceContext,
  { userId, sidecarId }: Asker,
  { sessionId }: AskedRequest,
): Promise<ApiError | null> {
  if ((await countPending(database, userId)) >= MOST_PENDING) return tooMany(`${MOST_PENDING} requests`);
  if (sidecarId === null && sessionId === null) return null;
  const ofSession = await countPending(database, userId, { sidecarId, sessionId });
  return ofSession >= MOST_PENDING_OF_SESSION ? tooMany(`${MOST_PENDING_OF_SESSION} requests of this session`) : null;
}

/**
 * The approval that answers a request; null if a new one must be requested. A request waits only with one of its own session:
 * a grant for the other's would let it through too; and only with one for the same version of its connector or server.
 */
function findCoveringApproval(
  rows: readonly ApprovalRow[],
  { sidecarId }: Asker,
  { requestId, sessionId, subject }: AskedRequest,
  now: string,
): ApprovalRow | null {
  const used = rows.find((row) => row.state === 'used' && row.usedBy === requestId);
  if (used !== undefined) return used;
  const isOver = (row: ApprovalRow) => row.state === 'denied' && (row.validUntil ?? '') <= now;
  const decisive: readonly ApprovalState[] = ['approved', 'denied', 'pending'];
  const isOwn = (row: ApprovalRow) =>
    row.state !== 'pending' || (row.sessionId === sessionId && row.sidecarId === sidecarId);
  const isSameVersion = (row: ApprovalRow) => row.state !== 'pending' || row.subjectVersion === subject.subjectVersion;
  const inForce = rows.filter(
    (row) => decisive.includes(row.state) && !isOver(row) && isOwn(row) && isSameVersion(row),
  );
  return inForce.find(({ state }) => state === 'approved') ?? inForce[0] ?? null;
}

/**
 * Uses an approved approval for one request; for a pending one, a request waits again. That is an event if none waited any
 * more: whoever decides is told once for each time that somebody waits. The returned state is that of the request.
 */
function use(context: ServiceContext, asker: Asker, row: ApprovalRow, requestId: string): Change<ApprovalRow> {
  if (row.state === 'pending') {
    const heldUntil = holdEnd(context, asker);
    if (heldUntil === null) return { statements: [], events: [], value: row };
    const wasGivenUp = row.heldUntil === null || row.heldUntil <= nowText(context);
    const events = wasGivenUp ? [approvalEvent('connector.approval.waits_again', row, asker.sidecarId)] : [];
    const tell = wasGivenUp && { afterwards: () => tellPeople(context, row) };
    return { statements: changeApproval(context.database, row, { heldUntil }), events, ...tell, value: row };
  }
  if (row.state !== 'approved') return { statements: [], events: [], value: answerTo(requestId, row) };
  const change = { usedBy: requestId, usedAt: nowText(context) };
  return { statements: useApproved(context.database, row, change), events: [], value: row };
}

/** For the request that used it, an approval is `approved`. */
function answerTo(requestId: string, row: ApprovalRow): ApprovalRow {
  return row.state === 'used' && row.usedBy === requestId ? { ...row, state: 'approved' } : row;
}

/**
 * The approval as it answers one request. If it is approved, or a grant covers it by now, the request uses it up. Otherwise
 * a pending one is only read, because sidecars poll every second. Refuses with `not_found`.
 */
export async function takeApproval(
  context: ServiceContext,
  asker: Asker,
  { id, requestId }: { readonly id: string; readonly requestId: string },
): Promise<Result<ApprovalRow, ApiError>> {
  const find = () => findApproval(context.database, ownViewer(asker), { id, now: nowText(context) });
  const seen = await find();
  if (seen === null) return err(notFound(id));
  const isGranted = (await grantFor(context, asker, seen)) !== null;
  if (seen.state !== 'approved' && !isGranted) return ok(answerTo(requestId, seen));
  return commit(context, controlChain(asker), async () => {
    const row = await find();
    if (row === null) return err(notFound(id));
    const grant = await grantFor(context, asker, row);
    if (grant !== null) return ok(useGrant(context, { grant, row, isNew: false }, toUse(asker, { requestId })));
    if (row.state === 'pending') return ok({ statements: [], events: [], value: row });
    return ok(use(context, asker, row, requestId));
  });
}

/** The grant that was given while the request waits; null if there is none, or if it waits at another sidecar. */
async function grantFor(context: ServiceContext, { sidecarId }: Asker, row: ApprovalRow): Promise<GrantRow | null> {
  const mayPass = row.state === 'pending' && row.sidecarId === sidecarId;
  return mayPass ? findGrantOf(context, row) : null;
}

interface Decision {
  readonly decision: 'approve' | 'deny';
  readonly grant?: GrantInput | undefined;
}

/**
 * Records a person's decision, and with a grant that further requests are allowed. What rules are about is approved once everybody
 * has approved it whom they need; anybody who may see it may deny it. Refuses with `not_found`, `approval_not_pending`,
 * `approver_required`, `grant_not_allowed`.
 */
export async function decideApproval(
  context: ServiceContext,
  caller: Caller,
  id: string,
  { decision, grant }: Decision,
): Promise<Result<ApprovalRecord, ApiError>> {
  await expireOverdue(context, caller.enterpriseId);
  return commit(context, controlChain(caller), async () => {
    const row = await findApproval(context.database, viewerOf(caller), { id, now: nowText(context) });
    if (row === null) return err(notFound(id));
    if (row.state !== 'pending') return err(notPending(row));
    const standing = await standingOf(context, caller, row);
    const problem = grant === undefined ? null : grantProblem(caller, row, standing);
    if (problem !== null) return err(problem);
    if (decision === 'deny') return ok(settle(context, caller, { row, standing }, { decision }));
    const counted = countVote(context, caller, { row, standing }, grant ?? null);
    if (!counted.ok) return counted;
    if (counted.value.missing > 0) return ok(waitForOthers(context, caller, row, counted.value));
    const all = { decision, grant: counted.value.grant ?? undefined };
    const settled = settle(context, caller, { row, standing: counted.value.standing }, all);
    const givers = counted.value.standing.votes.map(({ userId }) => userId);
    const votes = [...counted.value.statements, ...keepVotes(context.database, id, givers)];
    return ok({ ...settled, statements: [...votes, ...settled.statements] });
  });
}

/** The request is approved or denied from now on. */
function settle(
  context: ServiceContext,
  caller: Caller,
  { row, standing }: { readonly row: ApprovalRow; readonly standing: ApprovalStanding },
  { decision, grant: input }: Decision,
): Change<ApprovalRecord> {
  const granted = input === undefined ? null : giveGrant(context, caller, row, input);
  const change = {
    state: decision === 'approve' ? ('approved' as const) : ('denied' as const),
    decidedBy: caller.userId,
    decidedAt: nowText(context),
    validUntil: timeAfterSeconds(context, APPROVAL_VALID_SECONDS),
    grantId: granted?.value.id ?? null,
  };
  const more = { 'svc.approval.decision': decision, ...(decision === 'approve' && ruleData(standing)) };
  return {
    statements: [
      ...changeApproval(context.database, row, change),
      ...deleteViews(context.database, [row.id]),
      ...(granted?.statements ?? []),
    ],
    events: [approvalEvent('connector.approval.decided', row, caller.userId, more), ...(granted?.events ?? [])],
    value: toRecord({ ...row, ...change }),
  };
}

/** The rules that an approval was given under, and everybody who gave it. */
function ruleData({ rules, approvers }: ApprovalStanding): AuditEventData {
  if (rules.length === 0) return {};
  return {
    'svc.approval.rules': rules.map(({ id }) => id),
    'svc.approval.approvers': approvers.map(({ userId }) => userId),
  };
}

/** The request waits on: others have to approve it too, and are told so. */
function waitForOthers(
  context: ServiceContext,
  caller: Caller,
  row: ApprovalRow,
  { statements, standing, missing, isRepeated }: CountedVote,
): Change<ApprovalRecord> {
  const value = toRecord(row, standing);
  if (isRepeated) return { statements: [], events: [], value };
  const more = { ...ruleData(standing), 'svc.approval.missing': missing };
  const events = [approvalEvent('connector.approval.partly_approved', row, caller.userId, more)];
  return { statements, events, afterwards: () => tellPeople(context, row), value };
}

/** Refuses with `not_found`. */
export async function getApproval(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ApprovalRecord, ApiError>> {
  await expireOverdue(context, caller.enterpriseId);
  const row = await findApproval(context.database, viewerOf(caller), { id, now: nowText(context) });
  return row === null ? err(notFound(id)) : ok(toRecord(row, await standingOf(context, caller, row)));
}

const approvalPosition = z.strictObject({ id: z.string() });

/** Newest first. Refuses with `invalid_cursor`. */
export async function listApprovalPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly state?: ApprovalState | undefined },
): Promise<Result<Page<ApprovalRecord>, ApiError>> {
  return readPage(query, {
    position: approvalPosition,
    read: async ({ after, limit }) => {
      await expireOverdue(context, caller.enterpriseId);
      const page = { state: query.state, before: after?.id ?? null, limit, now: nowText(context) };
      const rows = await listApprovals(context.database, viewerOf(caller), page);
      const standings = await standingsOf(context, caller, rows);
      return rows.map((row) => ({ row, standing: standings.get(row.id) }));
    },
    toItem: ({ row, standing }) => toRecord(row, standing),
    positionOf: ({ row: { id } }) => ({ id }),
  });
}

/** How many approvals wait for the caller's decision. */
export function countWaiting(context: ServiceContext, caller: Caller): Promise<number> {
  return countVisiblePending(context.database, viewerOf(caller), nowText(context));
}

function notFound(id: string): ApiError {
  return apiError(
    'not_found',
    `there is no approval ${id} for you, or others have decided it: list yours with GET /v1/approvals`,
  );
}

function notPending({ id, state }: ApprovalRow): ApiError {
  const message = `the approval ${id} is ${state} and can no longer be decided`;
  return apiError('approval_not_pending', message, { state });
}

function tooMany(what: string): ApiError {
  return apiError('too_many_approvals', `${what} already wait for an approval: decide some of them first`);
}
