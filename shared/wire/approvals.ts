import { z } from 'zod';
import { approvalView } from './approval_views.ts';
import { grantInput } from './approval_grants.ts';
import { approvalNeed, approvalVote } from './people/approval_rules.ts';
import { id, line, owner, page, pageQuery, time } from './primitives.ts';

/** `approved` waits for its one request; `used` has let it through. `expired`: nobody decided in time, or the request was never repeated. */
export const APPROVAL_STATES = ['pending', 'approved', 'denied', 'expired', 'used'] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

/** How long an approval may wait for a decision. */
export const APPROVAL_PENDING_SECONDS = 3600;
/** How long a decision covers an identical request (design section 7). */
export const APPROVAL_VALID_SECONDS = 15 * 60;
/** How long a request is held for a decision. */
export const APPROVAL_HOLD_SECONDS = 60;

/** One request that a person has to approve: an operation of a connector, or a tool call of an MCP server. */
export const approvalRecord = z
  .object({
    id: id('apr'),
    state: z.enum(APPROVAL_STATES),
    /** Null for a tool call, like the next two fields and `operation`. */
    connector_id: id('con').nullable(),
    connector_fqn: z.string().nullable(),
    connector_version: z.string().nullable(),
    operation: z.string().nullable(),
    /** Null for an operation, like the next three fields. */
    mcp_server_id: id('mcp').nullable().default(null),
    mcp_server: z.string().nullable().default(null),
    /** Null also if the server's configuration names none. */
    mcp_server_version: z.string().nullable().default(null),
    tool: z.string().nullable().default(null),
    owner,
    /** The request in one line. */
    summary: z.string(),
    /** SHA-256 over the whole request or call: a decision covers one identical request. */
    fingerprint: z.string(),
    /** The user whose agent asks. */
    user_id: z.string(),
    sidecar_id: z.string().nullable(),
    session_id: z.string().nullable(),
    /** The session's name, such as that of its agent; null if it has none. */
    session_name: z.string().nullable().default(null),
    /** The folder in which the session was started, as its launcher said. */
    folder: z.string().nullable().default(null),
    requested_at: time,
    /** Until when a request waits for the decision. Later a decision holds for the agent's next identical request. */
    held_until: time.nullable().default(null),
    /** The deadline for a decision. */
    expires_at: time,
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    /** Until when the decision covers the request. */
    valid_until: time.nullable(),
    used_at: time.nullable(),
    /** What a grant that is given with the approval would cover; null: none can be given. */
    grant_covers: z.enum(['operation', 'identical']).nullable().default(null),
    /** The grant that was given with the decision, or that let the request through. */
    grant_id: id('apg').nullable().default(null),
    /** What the rules of the enterprise need for a request that waits; empty: its person approves, or who may do so for them. */
    needs: z.array(approvalNeed).default([]),
    /** Who has approved under the rules so far. */
    votes: z.array(approvalVote).default([]),
    /** Whether this call could approve it. Under rules a personal token never can. False once it does not wait any more. */
    may_approve: z.boolean().default(false),
  })
  .meta({ id: 'Approval' });
export type ApprovalRecord = z.infer<typeof approvalRecord>;

/** The subject under its usual name: `publisher/name operation`, or `server tool`. */
export function approvalTarget(
  record: Pick<ApprovalRecord, 'connector_fqn' | 'operation' | 'mcp_server' | 'tool'>,
): string {
  const { connector_fqn: fqn, operation, mcp_server: server, tool } = record;
  return server === null ? `${fqn ?? ''} ${operation ?? ''}` : `${server} ${tool ?? ''}`;
}

/** `GET /v1/approvals`: newest first. New ones and decisions are also sent as `connector.approval.` events of the stream. */
export const approvalsQuery = z.strictObject({ ...pageQuery, state: z.enum(APPROVAL_STATES).optional() });
export const approvalsPage = page(approvalRecord).meta({ id: 'ApprovalsPage' });
export const approvalParams = z.strictObject({ id: id('apr') });

/** `POST /v1/approvals/{id}/decide`. */
export const decisionInput = z
  .strictObject({ decision: z.enum(['approve', 'deny']), grant: grantInput.optional() })
  .refine(({ decision, grant }) => decision === 'approve' || grant === undefined, {
    path: ['grant'],
    message: 'goes with the decision "approve" only',
  })
  .meta({ id: 'ApprovalDecision' });
export type DecisionInput = z.output<typeof decisionInput>;

/** Identifies one request, so that asking again about it is harmless. */
const requestId = z.string().min(16).max(64);

/**
 * `POST /v1/sidecar/approvals`: asks for one request. A decision that covers it is used up for `request_id`; otherwise the
 * request waits with the pending approval of an identical one, or with a new one. The reply is a JWS (`APPROVAL_TYP`) of
 * {@link approvalPayload}.
 */
const asked = {
  request_id: requestId,
  fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
  summary: line(500).min(1),
  session_id: z.string().max(128).nullable(),
  /** For the person who decides. Sidecars of earlier versions do not send them. */
  session_name: line(100).nullable().default(null),
  folder: line(300).nullable().default(null),
  /** What a grant covers: SHA-256 over the operation, its host and its path inputs. Null: only identical requests. */
  scope: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable()
    .default(null),
};
export const approvalRequest = z
  .union([
    z.strictObject({ ...asked, connector_id: id('con'), operation: z.string().min(1).max(128) }),
    z.strictObject({ ...asked, mcp_server_id: id('mcp'), tool: line(256).min(1) }),
  ])
  .meta({ id: 'ApprovalRequest' });
export type ApprovalRequest = z.output<typeof approvalRequest>;

/** `GET /v1/sidecar/approvals/{id}?wait=25&request_id=`: waits for a decision and uses it up for the same request. */
export const approvalWaitQuery = z.strictObject({
  wait: z.coerce.number().int().min(0).max(25).default(0),
  request_id: requestId,
});

/** The payload of both replies. `approved`: this request may be sent, and no other. */
export const approvalPayload = z.strictObject({
  sidecar_id: id('sdc'),
  /** The call's jti. */
  nonce: z.string(),
  request_id: requestId,
  approval_id: id('apr'),
  state: z.enum(APPROVAL_STATES),
  /** Who wants to see the request, if the sidecar knows how to show it. */
  views: z.array(approvalView).optional(),
  expires_at: time,
});
export type ApprovalPayload = z.infer<typeof approvalPayload>;
