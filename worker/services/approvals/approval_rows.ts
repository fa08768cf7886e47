import {
  APPROVAL_HOLD_SECONDS,
  APPROVAL_PENDING_SECONDS,
  type ApprovalRecord,
} from '../../../shared/wire/approvals.ts';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { type Caller, mayActAs, ownerName } from '../../kernel/caller.ts';
import type { AuditDraft } from '../../kernel/commit.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { ApprovalRow, ApprovalViewer } from '../../store/approvals.ts';
import { type ApprovalStanding, toStandingFields } from './approval_standings.ts';
import { type ApprovalSubject, subjectEventData, subjectFields } from './approval_subject.ts';

/** A request that needs an approval. */
export interface AskedRequest {
  /** Identifies this request: asking again with the same id has no further effect. */
  readonly requestId: string;
  readonly subject: ApprovalSubject;
  readonly fingerprint: string;
  readonly summary: string;
  readonly sessionId: string | null;
  /** The session's name and where it was started, for the person who decides. */
  readonly sessionName?: string | null;
  readonly folder?: string | null;
  /** What a grant would cover besides identical requests. */
  readonly scope?: string | null;
}

/** The user that the request belongs to, and the sidecar that it came through; null if the user runs it here. */
export interface Asker {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly sidecarId: string | null;
}

/** A request that waits for a decision from now on, with the effect of its operation if that is known. */
export function newRow(
  context: ServiceContext,
  asker: Asker,
  request: AskedRequest,
  effect: string | null,
): ApprovalRow {
  const { subject, summary, fingerprint, sessionId } = request;
  return {
    id: freshId(context, 'apr'),
    enterpriseId: asker.enterpriseId,
    userId: asker.userId,
    ...subject,
    summary,
    fingerprint,
    sidecarId: asker.sidecarId,
    sessionId,
    sessionName: request.sessionName ?? null,
    folder: request.folder ?? null,
    state: 'pending',
    requestedAt: nowText(context),
    heldUntil: holdEnd(context, asker),
    expiresAt: timeAfterSeconds(context, APPROVAL_PENDING_SECONDS),
    decidedBy: null,
    decidedAt: null,
    validUntil: null,
    usedBy: null,
    usedAt: null,
    scope: request.scope ?? null,
    grantId: null,
    effect,
    ended: false,
  };
}

/** Only a sidecar holds the request while a person decides. */
export function holdEnd(context: ServiceContext, { sidecarId }: Asker): string | null {
  return sidecarId === null ? null : timeAfterSeconds(context, APPROVAL_HOLD_SECONDS);
}

/** The record of an approval; `standing` is where it stands if it waits. */
export function toRecord(row: ApprovalRow, standing?: ApprovalStanding): ApprovalRecord {
  return {
    id: row.id,
    state: row.state,
    ...subjectFields(row),
    owner: ownerName(row.subjectOwnerId),
    summary: row.summary,
    fingerprint: row.fingerprint,
    user_id: row.userId,
    sidecar_id: row.sidecarId,
    session_id: row.sessionId,
    session_name: row.sessionName,
    folder: row.folder,
    requested_at: row.requestedAt,
    held_until: row.heldUntil,
    expires_at: row.expiresAt,
    decided_by: row.decidedBy,
    decided_at: row.decidedAt,
    valid_until: row.validUntil,
    used_at: row.usedAt,
    grant_covers:
      row.sessionId === null && row.sidecarId === null ? null : row.scope === null ? 'identical' : 'operation',
    grant_id: row.grantId,
    ...toStandingFields(standing),
  };
}

type ApprovalEventType =
  `connector.approval.${'requested' | 'waits_again' | 'partly_approved' | 'decided' | 'expired'}`;

/** The summary stays out of the log: it contains values of path inputs, which the spec may redact. */
export function approvalEvent(
  type: ApprovalEventType,
  row: ApprovalRow,
  actor: string | null,
  more: AuditEventData = {},
): AuditDraft {
  const data = { 'svc.approval.id': row.id, ...subjectEventData(row), ...more };
  return { type, actor, data };
}

export function viewerOf(caller: Caller): ApprovalViewer {
  const { userId, enterpriseId, role } = caller;
  return { userId, enterpriseId, isAdmin: mayActAs(caller, 'admin'), role };
}

/** Sees what is the user's own, and nothing else. */
export function ownViewer({ userId, enterpriseId }: Pick<Asker, 'userId' | 'enterpriseId'>): ApprovalViewer {
  return { userId, enterpriseId, isAdmin: false, role: null };
}

export function timeAfterSeconds(context: ServiceContext, seconds: number): string {
  return new Date(context.clock.now() + seconds * 1000).toISOString();
}
