import type { ConnectorOperation } from '../../../shared/connect/connector_index.ts';
import type { OperationRequestParts } from '../../../shared/connect/operation_request.ts';
import { requestFingerprint } from '../../../shared/connect/request_fingerprint.ts';
import { requestSummary } from '../../../shared/connect/request_summary.ts';
import type { InstalledConnector, Operation } from '../../../shared/model/connector.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import type { ConnectorRow } from '../../store/connectors.ts';
import { connectorSubject } from '../approvals/approval_subject.ts';
import { askApproval } from '../approvals/approvals.ts';
import type { Caller } from '../../kernel/caller.ts';
import { randomToken } from '../../kernel/encoding.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';

/** The request of an operation, as it would be sent. */
interface RequestToApprove {
  readonly row: ConnectorRow;
  readonly match: ConnectorOperation;
  readonly parts: OperationRequestParts;
}

/**
 * Uses up a person's approval for a request, or requests one; null if the operation needs none. Refuses with
 * `too_many_approvals`.
 */
export async function approvalOf(
  context: ServiceContext,
  caller: Caller,
  { row, match, parts }: RequestToApprove,
): Promise<Result<ApprovalRow | null, ApiError>> {
  const { connector, operation, document } = match;
  if (operation.approval === 'none') return ok(null);
  const body = new TextEncoder().encode(parts.body ?? '');
  const asked = {
    requestId: randomToken(),
    subject: connectorSubject(row, operation.name),
    fingerprint: await fingerprintOf(connector, operation, parts, body),
    summary: requestSummary(connector, operation, { ...parts, bodyBytes: body.length, document }).toWellFormed(),
    sessionId: null,
  };
  return askApproval(context, { ...caller, sidecarId: null }, asked);
}

/** Why a request must not be sent; null if it may. */
export function approvalProblem(approval: ApprovalRow | null): ApiError | null {
  if (approval === null || approval.state === 'approved') return null;
  const details = { approval_id: approval.id };
  if (approval.state === 'denied')
    return apiError('approval_denied', `the request was denied (approval ${approval.id})`, details);
  const message = `the request needs an approval: decide with POST /v1/approvals/${approval.id}/decide, then run it again within 15 minutes`;
  return apiError('approval_required', message, details);
}

function fingerprintOf(
  { spec }: InstalledConnector,
  operation: Operation,
  { method, host, path, query, body }: OperationRequestParts,
  bytes: Uint8Array,
): Promise<string> {
  return requestFingerprint({
    fqn: spec.fqn,
    operation: operation.name,
    method,
    host,
    target: query === null ? path : `${path}?${query}`,
    contentType: body === null ? '' : 'application/json',
    body: [bytes],
  });
}
