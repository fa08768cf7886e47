import { z } from 'zod';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { GrantInput, GrantRecord, GrantState } from '../../../shared/wire/approval_grants.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import {
  countUse,
  type CoveredRequest,
  endGrant,
  findGrant,
  findGrantFor,
  type GrantRow,
  insertGrant,
  type ListedGrant,
  listGrants,
} from '../../store/approval_grants.ts';
import { deleteViews } from '../../store/approval_views.ts';
import { type ApprovalRow, changeApproval, insertApproval } from '../../store/approvals.ts';
import { type Caller, ownerName } from '../../kernel/caller.ts';
import { type AuditDraft, type Change, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { ApprovalStanding } from './approval_standings.ts';
import { subjectEventData, subjectFields } from './approval_subject.ts';
import { timeAfterSeconds, viewerOf } from './approval_rows.ts';

type AskedRow = Omit<CoveredRequest, 'covers'> & Pick<ApprovalRow, 'scope' | 'fingerprint'>;

/** The grant that lets a request through now; null if there is none. Reads only. */
export function findGrantOf(context: ServiceContext, asked: AskedRow): Promise<GrantRow | null> {
  return findGrantFor(context.database, { ...asked, covers: coverageOf(asked) }, nowText(context));
}

/** What a grant for this request covers: its operation and path inputs, or the identical request alone. */
function coverageOf({ scope, fingerprint }: Pick<ApprovalRow, 'scope' | 'fingerprint'>): string {
  return scope ?? fingerprint;
}

/**
 * Lets a request through by a grant. Each use is an approval of its own: `row`, which waits or is new. Nobody decided about it,
 * so it is no decision of the grant's giver. The returned state is that of the request.
 */
export function useGrant(
  context: ServiceContext,
  { grant, row, isNew }: { readonly grant: GrantRow; readonly row: ApprovalRow; readonly isNew: boolean },
  { requestId, actor }: { readonly requestId: string; readonly actor: string },
): Change<ApprovalRow> {
  const now = nowText(context);
  const change = {
    state: 'used' as const,
    heldUntil: null,
    validUntil: now,
    usedBy: requestId,
    usedAt: now,
    grantId: grant.id,
  };
  const { database } = context;
  const written = isNew ? insertApproval(database, { ...row, ...change }) : changeApproval(database, row, change);
  const more = { 'svc.approval.id': row.id, 'svc.approval.grant_use': grant.used + 1 };
  return {
    statements: [...countUse(database, grant, now), ...written, ...deleteViews(database, [row.id])],
    events: [grantEvent('connector.approval.grant_used', grant, actor, more)],
    value: { ...row, ...change, state: 'approved' },
  };
}

/** What giving a grant with an approval writes. The approved request is its first use. */
export function giveGrant(
  context: ServiceContext,
  caller: Caller,
  row: ApprovalRow,
  input: GrantInput,
): Pick<Change<GrantRow>, 'statements' | 'events' | 'value'> {
  const now = nowText(context);
  const { enterpriseId, userId, subject, subjectId, subjectOwnerId, subjectName, subjectVersion, action } = row;
  const { summary, sidecarId, sessionId, sessionName, effect } = row;
  const grant: GrantRow = {
    id: freshId(context, 'apg'),
    enterpriseId,
    userId,
    subject,
    subjectId,
    subjectOwnerId,
    subjectName,
    subjectVersion,
    action,
    summary,
    sidecarId,
    sessionId,
    sessionName,
    covers: coverageOf(row),
    identicalOnly: row.scope === null,
    times: input.times,
    used: 1,
    lastUsedAt: now,
    givenAt: now,
    endsAt: timeAfterSeconds(context, input.seconds),
    revokedAt: null,
    revokedBy: null,
    effect,
    approvalId: row.id,
    ended: false,
  };
  const more = {
    'svc.approval.id': row.id,
    'svc.approval.grant_ends': grant.endsAt,
    ...(grant.times !== null && { 'svc.approval.grant_times': grant.times }),
  };
  const events = [grantEvent('connector.approval.granted', grant, caller.userId, more)];
  return { statements: insertGrant(context.database, grant), events, value: grant };
}

/**
 * Why the caller may not allow further requests like this one; null if they may. Without rules only the person whose agent asks may;
 * under rules those who approve, each for their part.
 */
export function grantProblem(
  caller: Caller,
  row: ApprovalRow,
  { rules }: Pick<ApprovalStanding, 'rules'>,
): ApiError | null {
  if (rules.length === 0 && row.userId !== caller.userId) {
    return notAllowed('this request is another person’s, so only the one request can be approved');
  }
  const isBound = row.sessionId !== null || row.sidecarId !== null;
  return isBound ? null : notAllowed('this request came from no session, so only the one request can be approved');
}

const grantPosition = z.strictObject({ id: z.string() });

/** The grants that the caller may revoke, newest first, also those that have ended. Refuses with `invalid_cursor`. */
export function listGrantPage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery,
): Promise<Result<Page<GrantRecord>, ApiError>> {
  const now = nowText(context);
  return readPage(query, {
    position: grantPosition,
    read: ({ after, limit }) => listGrants(context.database, viewerOf(caller), { before: after?.id ?? null, limit }),
    toItem: (row) => toGrantRecord(row, now),
    positionOf: ({ grant: { id } }) => ({ id }),
  });
}

/** Ends a grant: no request that is asked for from now on passes by it. One that was revoked stays so. Refuses with `not_found`. */
export function revokeGrant(context: ServiceContext, caller: Caller, id: string): Promise<Result<null, ApiError>> {
  return commit(context, controlChain(caller), async () => {
    const grant = await findGrant(context.database, viewerOf(caller), id);
    if (grant === null) {
      return err(apiError('not_found', `there is no grant ${id}: list them with GET /v1/approval-grants`));
    }
    if (grant.revokedAt !== null) return ok({ statements: [], events: [], value: null });
    return ok({ ...endOneGrant(context, grant, caller.userId), value: null });
  });
}

/** What revoking a grant writes. */
export function endOneGrant(
  context: ServiceContext,
  grant: GrantRow,
  by: string,
  more: AuditEventData = {},
): Pick<Change<null>, 'statements' | 'events'> {
  return {
    statements: endGrant(context.database, grant, { revokedAt: nowText(context), revokedBy: by }),
    events: [grantEvent('connector.approval.grant_revoked', grant, by, more)],
  };
}

function toGrantRecord(listed: ListedGrant, now: string): GrantRecord {
  const { grant } = listed;
  return {
    id: grant.id,
    state: stateOf(listed, now),
    ...subjectFields(grant),
    owner: ownerName(grant.subjectOwnerId),
    summary: grant.summary,
    identical_only: grant.identicalOnly,
    user_id: grant.userId,
    sidecar_id: grant.sidecarId,
    session_id: grant.sessionId,
    session_name: grant.sessionName,
    given_by: [...listed.givers],
    times: grant.times,
    used: grant.used,
    last_used_at: grant.lastUsedAt,
    given_at: grant.givenAt,
    ends_at: grant.endsAt,
    revoked_at: grant.revokedAt,
  };
}

function stateOf({ grant, isChanged, hasLostGiver }: ListedGrant, now: string): GrantState {
  if (grant.revokedAt !== null) return 'revoked';
  if (grant.times !== null && grant.used >= grant.times) return 'used_up';
  if (grant.endsAt <= now) return 'over';
  if (isChanged) return 'changed';
  return hasLostGiver ? 'giver_left' : 'open';
}

function grantEvent(
  type: 'connector.approval.granted' | 'connector.approval.grant_used' | 'connector.approval.grant_revoked',
  grant: GrantRow,
  actor: string,
  more: AuditEventData = {},
): AuditDraft {
  return { type, actor, data: { 'svc.approval.grant': grant.id, ...subjectEventData(grant), ...more } };
}

function notAllowed(why: string): ApiError {
  return apiError('grant_not_allowed', `a grant is for further requests of one's own session: ${why}`);
}
