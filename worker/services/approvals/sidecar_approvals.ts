import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApprovalPayload, ApprovalRequest } from '../../../shared/wire/approvals.ts';
import type { ApprovalView } from '../../../shared/wire/approval_views.ts';
import { APPROVAL_TYP, CREDENTIALS_REPLY_SECONDS } from '../../../shared/wire/channel.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import { findConnector } from '../../store/connectors.ts';
import { findSidecar } from '../../store/sidecars.ts';
import { openViews } from './approval_views.ts';
import { type ApprovalSubject, connectorSubject, toolSubject } from './approval_subject.ts';
import type { Asker } from './approval_rows.ts';
import { askApproval, takeApproval } from './approvals.ts';
import { visibleOwners } from '../../kernel/caller.ts';
import { connectorNotFound } from '../connectors/connectors.ts';
import { configurationOf } from '../mcp/mcp_configuration.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { findSharedConnector } from '../sharing/shared_connectors.ts';
import { findUsableServer } from '../sharing/shared_servers.ts';
import { hasEnded, refuseRevoked, type SidecarCaller } from '../sidecars/sidecar_calls.ts';

const LOOK_MS = 1_000;

/** Requests an approval for an agent's request; the reply is signed. Refuses with `not_found`, `too_many_approvals`. */
export async function askSidecarApproval(
  context: ServiceContext,
  caller: SidecarCaller,
  request: ApprovalRequest,
): Promise<Result<string, ApiError>> {
  const subject = await subjectOf(context, caller, request);
  if (!subject.ok) return subject;
  const { fingerprint, summary, request_id: requestId, session_id: sessionId } = request;
  const { session_name: sessionName, folder, scope } = request;
  const asked = { requestId, subject: subject.value, fingerprint, summary, sessionId, sessionName, folder, scope };
  const approval = await askApproval(context, askerOf(caller), asked);
  return approval.ok ? ok(await signApproval(context, caller, requestId, approval.value)) : approval;
}

async function subjectOf(
  context: ServiceContext,
  caller: SidecarCaller,
  request: ApprovalRequest,
): Promise<Result<ApprovalSubject, ApiError>> {
  const owners = visibleOwners(caller);
  if ('connector_id' in request) {
    const id = request.connector_id;
    const own = await findConnector(context.database, owners, id);
    const row = own ?? (await findSharedConnector(context, caller, { id }))?.sharedFrom;
    if (row === undefined) return err(connectorNotFound(id));
    return ok(connectorSubject(row.connector, request.operation));
  }
  const server = await findUsableServer(context, caller, request.mcp_server_id);
  if (server !== null) return ok(toolSubject(server, configurationOf(server).version, request.tool));
  return err(apiError('not_found', `there is no MCP server ${request.mcp_server_id}`));
}

/**
 * Waits up to `waitSeconds` for a decision and uses it up for the request; the reply is signed. Refuses with
 * `not_found`, and with `sidecar_revoked` also if the sidecar ends while it waits.
 */
export async function awaitSidecarApproval(
  context: ServiceContext,
  caller: SidecarCaller,
  wait: {
    readonly id: string;
    readonly requestId: string;
    readonly waitSeconds: number;
    /** The sidecar can show the request: the wait ends when a page wants to see it. */
    readonly knowsViews: boolean;
    readonly signal: AbortSignal;
  },
): Promise<Result<string, ApiError>> {
  const deadline = context.clock.now() + wait.waitSeconds * 1000;
  for (;;) {
    const approval = await takeApproval(context, askerOf(caller), wait);
    if (!approval.ok) return approval;
    const left = deadline - context.clock.now();
    const views = wait.knowsViews ? await openViews(context, askerOf(caller), approval.value) : [];
    if (approval.value.state !== 'pending' || views.length > 0 || left <= 0 || wait.signal.aborted) {
      return ok(await signApproval(context, caller, wait.requestId, approval.value, views));
    }
    await context.clock.sleep(Math.min(LOOK_MS, left), wait.signal);
    const sidecar = await findSidecar(context.database, caller.sidecarId);
    if (sidecar !== null && hasEnded(context, sidecar)) return err(await refuseRevoked(context, sidecar, caller.nonce));
  }
}

function askerOf({ userId, enterpriseId, sidecarId }: SidecarCaller): Asker {
  return { userId, enterpriseId, sidecarId };
}

function signApproval(
  context: ServiceContext,
  caller: SidecarCaller,
  requestId: string,
  { id, state }: ApprovalRow,
  views: readonly ApprovalView[] = [],
): Promise<string> {
  const payload: ApprovalPayload = {
    sidecar_id: caller.sidecarId,
    nonce: caller.nonce,
    request_id: requestId,
    approval_id: id,
    state,
    ...(views.length > 0 && { views: [...views] }),
    expires_at: new Date(context.clock.now() + CREDENTIALS_REPLY_SECONDS * 1000).toISOString(),
  };
  return context.controlPlane.sign(APPROVAL_TYP, payload);
}
