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
  findOverdueApprovals,
  insertApproval,
  listApprovals,
} from '../../store/approvals.ts';
import { findOperationEffect } from '../../store/people/approval_rules.ts';
import type { GrantInput } from '../../../shared/wire/approval_grants.ts';
import {
  type AskedRequest,
  type Asker,
  holdEnd,
  newRow,
  ownViewer,
  timeAfterSeconds,
  toRecord,
  viewerOf,
} from './approval_rows.ts';
import { type ApprovalStanding, keyOf, rulesKeyOf, standingOf, standingsOf } from './approval_standings.ts';
import { subjectEventData } from './approval_subject.ts';
import { countVote, type CountedVote } from './approval_votes.ts';
import { findGrantOf, giveGrant, grantProblem, useGrant } from './grants.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
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
    const rules = await rulesKeyOf(context, { ...subject, enterpriseId: asker.enterpriseId, effect });
    const rows = await findApprovalsOf(context.database, same, MOST_LOOKED_AT);
    const covering = findCoveringApproval(rows, asker, { ...request, rules }, nowText(context));
    const isDecided = covering !== null && covering.state !== 'pending';
    if (isDecided) return ok(use(context, asker, covering, request.requestId));
    const row = covering ?? newRow(context, asker, request, effect);
    const grant = await findGrantOf(context, row, rules);
    const isNew = covering === null;
    if (grant !== null) return ok(useGrant(context, { grant, row, isNew }, toUse(asker, request)));
    if (covering !== null) return ok(use(context, asker, covering, request.requestId));
    const full = await fullList(context, asker, request);
    if (full !== null) return err(full);
    const events = [approvalEvent('connector.approval.requested', row, asker.sidecarId ?? asker.userId)];
    const afterwards = () => tellPeople(context, asker);
    return ok({ statements: insertApproval(context.database, row), events, afterwards, value: row });
  });
}

function tellPeople(context: ServiceContext, { enterpriseId }: Pick<Asker, 'enterpriseId'>): void {
  context.defer('telling people of an approval', () => sendAlerts(context, enterpriseId));
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
 * a grant for the other's would let it through too. What was approved under other rules than those that hold now is over.
 */
function findCoveringApproval(
  rows: readonly ApprovalRow[],
  { sidecarId }: Asker,
  { requestId, sessionId, rules }: AskedRequest & { readonly rules: string },
  now: string,
): ApprovalRow | null {
  const used = rows.find((row) => row.state === 'used' && row.usedBy === requestId);
  if (used !== undefined) return used;
  const isInForce = (row: ApprovalRow) => now < (row.state === 'pending' ? row.expiresAt : (row.validUntil ?? ''));
  const decisive: readonly ApprovalState[] = ['approved', 'denied', 'pending'];
  const isOwn = (row: ApprovalRow) =>
    row.state !== 'pending' || (row.sessionId === sessionId && row.sidecarId === sidecarId);
  const isUnderRules = (row: ApprovalRow) => row.state !== 'approved' || row.rules === rules;
  const inForce = rows.filter(
    (row) => decisive.includes(row.state) && isInForce(row) && isOwn(row) && isUnderRules(row),
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
    const tell = wasGivenUp && { afterwards: () => tellPeople(context, asker) };
    return { statements: changeApproval(context.database, row, { heldUntil }), events, ...tell, value: row };
  }
  if (row.state !== 'approved') return { statements: [], events: [], value: answerTo(requestId, row) };
  const change = { state: 'used' as const, usedBy: requestId, usedAt: nowText(context) };
  return { statements: changeApproval(context.database, row, change), events: [], value: row };
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
  const find = () => findApproval(context.database, ownViewer(asker), id);
  const seen = await find();
  if (seen === null) return err(notFound(id));
  const isGranted = (await grantFor(context, asker, seen)) !== null;
  if (seen.state !== 'approved' && !isGranted) return ok(answerTo(requestId, seen));
  return commit(context, controlChain(asker), async () => {
    const row = await find();
    if (row === null) return err(notFound(id));
    const isLate = row.state === 'approved' && (row.validUntil ?? '') <= nowText(context);
    const isOver = row.state === 'approved' && row.rules !== (await rulesKeyOf(context, row));
    if (isLate || isOver) return ok({ statements: [], events: [], value: { ...row, state: 'expired' } });
    const grant = await grantFor(context, asker, row);
    if (grant !== null) return ok(useGrant(context, { grant, row, isNew: false }, toUse(asker, { requestId })));
    if (row.state === 'pending') return ok({ statements: [], events: [], value: row });
    return ok(use(context, asker, row, requestId));
  });
}

/** The grant that was given while the request waits; null if there is none, or if it waits at another sidecar. */
async function grantFor(context: ServiceContext, { sidecarId }: Asker, row: ApprovalRow): Promise<GrantRow | null> {
  const mayPass = row.state === 'pending' && row.sidecarId === sidecarId && nowText(context) < row.expiresAt;
  return mayPass ? findGrantOf(context, row, await rulesKeyOf(context, row)) : null;
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
    const row = await findApproval(context.database, viewerOf(caller), id);
    if (row === null) return err(notFound(id));
    if (row.state !== 'pending' || row.expiresAt <= nowText(context)) return err(notPending(row));
    const standing = await standingOf(context, caller, row);
    const problem = grant === undefined ? null : grantProblem(caller, row, standing);
    if (problem !== null) return err(problem);
    if (decision === 'deny' || standing.rules.length === 0) {
      return ok(settle(context, caller, { row, standing }, { decision, grant }));
    }
    const counted = countVote(context, caller, { row, standing }, grant ?? null);
    if (!counted.ok) return counted;
    if (counted.value.missing > 0) return ok(waitForOthers(context, caller, row, counted.value));
    const all = { decision, grant: counted.value.grant ?? undefined };
    const settled = settle(context, caller, { row, standing: counted.value.standing }, all);
    return ok({ ...settled, statements: [...counted.value.statements, ...settled.statements] });
  });
}

/** The request is approved or denied from now on. */
function settle(
  context: ServiceContext,
  caller: Caller,
  { row, standing }: { readonly row: ApprovalRow; readonly standing: ApprovalStanding },
  { decision, grant: input }: Decision,
): Change<ApprovalRecord> {
  const rules = keyOf(standing.rules);
  const granted = input === undefined ? null : giveGrant(context, caller, { row, rules }, input);
  const change = {
    state: decision === 'approve' ? ('approved' as const) : ('denied' as const),
    decidedBy: caller.userId,
    decidedAt: nowText(context),
    validUntil: timeAfterSeconds(context, APPROVAL_VALID_SECONDS),
    grantId: granted?.value.id ?? null,
    rules,
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
  return { statements, events, afterwards: () => tellPeople(context, caller), value };
}

/** Refuses with `not_found`. */
export async function getApproval(
  context: ServiceContext,
  caller: Caller,
  id: string,
): Promise<Result<ApprovalRecord, ApiError>> {
  await expireOverdue(context, caller.enterpriseId);
  const row = await findApproval(context.database, viewerOf(caller), id);
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
      const page = { state: query.state, before: after?.id ?? null, limit };
      const rows = await listApprovals(context.database, viewerOf(caller), page);
      const standings = await standingsOf(context, caller, rows);
      return rows.map((row) => ({ row, standing: standings.get(row.id) }));
    },
    toItem: ({ row, standing }) => toRecord(row, standing),
    positionOf: ({ row: { id } }) => ({ id }),
  });
}

const EXPIRED_AT_A_TIME = 100;

/** How many approvals wait for the caller's decision. */
export function countWaiting(context: ServiceContext, caller: Caller): Promise<number> {
  return countVisiblePending(context.database, viewerOf(caller), nowText(context));
}

/** Expires approvals that nobody decided in time, and approved ones that were not used in time. */
export async function expireOverdue(context: ServiceContext, enterpriseId: string): Promise<void> {
  await commit(context, controlChain({ enterpriseId }), async () => {
    const now = nowText(context);
    const rows = await findOverdueApprovals(context.database, enterpriseId, now, EXPIRED_AT_A_TIME);
    const ids = rows.map(({ id }) => id);
    const expired = rows.flatMap((row) => changeApproval(context.database, row, { state: 'expired' }));
    const statements = [...expired, ...deleteViews(context.database, ids)];
    const events = rows.map((row) => approvalEvent('connector.approval.expired', row, null));
    return ok({ statements, events, value: null });
  });
}

type ApprovalEventType =
  `connector.approval.${'requested' | 'waits_again' | 'partly_approved' | 'decided' | 'expired'}`;

/** The summary stays out of the log: it contains values of path inputs, which the spec may redact. */
function approvalEvent(
  type: ApprovalEventType,
  row: ApprovalRow,
  actor: string | null,
  more: AuditEventData = {},
): AuditDraft {
  const data = { 'svc.approval.id': row.id, ...subjectEventData(row), ...more };
  return { type, actor, data };
}

function notFound(id: string): ApiError {
  return apiError('not_found', `there is no approval ${id}: list them with GET /v1/approvals`);
}

function notPending({ id, state }: ApprovalRow): ApiError {
  const message = `the approval ${id} is ${state === 'pending' ? 'expired' : state} and can no longer be decided`;
  return apiError('approval_not_pending', message, { state });
}

function tooMany(what: string): ApiError {
  return apiError('too_many_approvals', `${what} already wait for an approval: decide some of them first`);
}
