import { compileConnectors, type ConnectorOperation } from '../../../shared/connect/connector_index.ts';
import { confirmOperation } from '../../../shared/connect/confirm_operation.ts';
import { buildOperationRequest, type OperationRequestParts } from '../../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../../shared/connect/sanitised_reply.ts';
import type { AuditEvent } from '../../../shared/model/audit_event.ts';
import { type InstalledConnector, runnableOperations, type Operation } from '../../../shared/model/connector.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { RunReply, RunRequest } from '../../../shared/wire/connectors/connectors.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { didYouMean } from '../../../shared/model/near_match.ts';
import { findConnectorsNamed, type ConnectorRow, type WithCredential } from '../../store/connectors.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { commit } from '../../kernel/commit.ts';
import { findSharedConnector, listUsableConnectors } from '../sharing/shared_connectors.ts';
import { ofColleague, type UsableConnector, usableAccess } from './connector_access.ts';
import { callUpstream } from './connector_call.ts';
import { credentialProblem } from './connector_problems.ts';
import { toInstalled } from './connector_records.ts';
import { type RunClient, runEventData, type RunOutcome, type RunSubject } from './connector_run_event.ts';
import { toBase64, randomToken } from '../../kernel/encoding.ts';
import { controlChain } from '../../kernel/policy_change.ts';
import { freshId, nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { requestFingerprint } from '../../../shared/connect/request_fingerprint.ts';
import { whoAsks } from '../../../shared/mcp/call_summary.ts';
import { requestSummary } from '../../../shared/connect/request_summary.ts';
import type { ApprovalRow } from '../../store/approvals.ts';
import { neededByRules } from '../approvals/approval_standings.ts';
import { connectorSubject } from '../approvals/approval_subject.ts';
import { askApproval, fingerprintFor } from '../approvals/approvals.ts';

/** A run of an existing operation. From here on the run is audited, whatever its outcome. */
interface Run extends RunSubject {
  readonly row: UsableConnector;
  readonly host: string | undefined;
}

/**
 * Runs an operation of an installed connector for the caller (specification section 4, Connector operations). Refuses
 * with `connector_operation_not_found`, `invalid_args`, `approval_required`, `approval_denied`, `too_many_approvals`,
 * `binding_required`, `credential_unavailable`, `reauthorisation_required` and the `upstream_` codes.
 */
export async function runOperation(
  context: ServiceContext,
  caller: Caller,
  request: RunRequest,
  client: RunClient | null = null,
): Promise<Result<RunReply, ApiError>> {
  const found = await recognise(context, caller, request);
  if (!found.ok) return found;
  const recorded = attemptAndRecord(context, caller, { ...found.value, client });
  // A platform may drop the request when its client disconnects, but not the record of what was sent.
  context.defer('a run of an operation', () => recorded);
  return recorded;
}

async function attemptAndRecord(
  context: ServiceContext,
  caller: Caller,
  run: Run,
): Promise<Result<RunReply, ApiError>> {
  const outcome = await attempt(context, caller, run);
  const audited = await record(context, caller, run, outcome);
  if (!audited.ok) return audited;
  return outcome.result.ok ? ok(toReply(run, audited.value, outcome.result.value)) : outcome.result;
}

async function recognise(
  context: ServiceContext,
  caller: Caller,
  request: RunRequest,
): Promise<Result<Omit<Run, 'client'>, ApiError>> {
  const rows = await findConnectorsNamed(context.database, visibleOwners(caller), request.connector_fqn);
  const row =
    chooseConnector(caller, rows) ?? (await findSharedConnector(context, caller, { fqn: request.connector_fqn }));
  if (row === null) return err(noConnector());
  const connector = toInstalled(row);
  const operation = runnableOperations(connector.spec).find(({ name }) => name === request.operation);
  if (operation === undefined) return err(noOperation(connector, request));
  return ok({ row, connector, operation, args: request.args, host: request.host, tool: request.tool });
}

/** Of the connectors with one name, the one that is run: an active one if there is one, and the caller's own first. Null for none. */
export function chooseConnector<T extends WithCredential<ConnectorRow>>(
  caller: Pick<Caller, 'userId'>,
  rows: readonly T[],
): T | null {
  const active = rows.filter(({ connector }) => connector.activatedAt !== null);
  const named = active.length > 0 ? active : rows;
  return named.find(({ connector }) => connector.ownerId === caller.userId) ?? named[0] ?? null;
}

/** No approval is requested before there is a credential that the approved request can use. */
async function attempt(context: ServiceContext, caller: Caller, run: Run): Promise<RunOutcome> {
  const { connector, operation, args, host } = run;
  const built = buildOperationRequest(connector, operation, args, host);
  if (!built.ok) return { parts: null, approvalId: null, result: err(invalidArgs(built.error)) };
  const parts = built.value;
  const unready = connector.inactive === true ? problemOf(run.row) : null;
  if (unready !== null) return { parts, approvalId: null, result: err(unready) };
  const confirmed = await confirm(context, caller, run, parts);
  if (!confirmed.ok) return { parts, approvalId: null, result: confirmed };
  const { document } = confirmed.value;
  const missing = problemOf(run.row);
  if (missing !== null) return { parts, document, approvalId: null, result: err(missing) };
  const approval = await approvalOf(context, caller, {
    row: (run.row.sharedFrom ?? run.row).connector,
    match: confirmed.value,
    parts,
    client: run.client,
  });
  if (!approval.ok) return { parts, document, approvalId: null, result: approval };
  const approvalId = approval.value?.id ?? null;
  const held = await approvalProblem(context, caller, approval.value);
  if (held !== null) return { parts, document, approvalId, result: err(held) };
  const access = await usableAccess(context, run.row);
  if (!access.ok) return { parts, document, approvalId, result: access };
  const called = await callUpstream(context.outbound, parts, access.value.token, context.limits);
  return {
    parts,
    document,
    approvalId,
    result: called.ok ? called : err(apiError(called.error.reason, called.error.message)),
  };
}

function problemOf(row: UsableConnector): ApiError | null {
  const problem = credentialProblem(row);
  return problem === null || row.sharedFrom === undefined ? problem : ofColleague(problem);
}

/**
 * The args must not select an operation with an approval through another one: `/items/{id}` with `latest` for the id.
 */
async function confirm(
  context: ServiceContext,
  caller: Caller,
  { connector, operation }: Run,
  parts: OperationRequestParts,
): Promise<Result<ConnectorOperation, ApiError>> {
  const rows = await listUsableConnectors(context, caller, parts.host);
  const installed = rows.map((row) => (row.connector.id === connector.id ? connector : toInstalled(row)));
  const confirmed = confirmOperation(compileConnectors(installed), { connector, operation }, parts);
  return confirmed.ok ? confirmed : err(invalidArgs([{ field: 'args', message: confirmed.error }]));
}

/** Writes the run to the audit log; its reply waits for that. */
async function record(
  context: ServiceContext,
  caller: Caller,
  run: Run,
  outcome: RunOutcome,
): Promise<Result<string, ApiError>> {
  const event: AuditEvent = {
    id: freshId(context, 'evt'),
    type: outcome.result.ok ? 'connector.proxy.proxied' : 'connector.proxy.rejected',
    time: nowText(context),
    sidecar_id: null,
    session_id: null,
    actor: caller.userId,
    data: runEventData(run, outcome),
  };
  return commit(context, controlChain(caller), async () => ok({ statements: [], events: [event], value: event.id }));
}

function toReply({ connector, operation }: Run, auditId: string, reply: SanitisedReply): RunReply {
  return {
    status: 'proxied',
    audit_id: auditId,
    connector_fqn: connector.spec.fqn,
    operation: operation.name,
    upstream_status: reply.upstreamStatus,
    content_type: reply.contentType,
    body_base64: toBase64(reply.body),
  };
}

function noConnector(): ApiError {
  const message = 'no connector with that connector_fqn is installed: list them with GET /v1/connectors';
  return apiError('connector_operation_not_found', message);
}

function noOperation({ spec }: InstalledConnector, { operation }: RunRequest): ApiError {
  const names = spec.operations.map(({ name }) => name);
  const message = `${spec.fqn} has no operation with that name${didYouMean(operation, names)}`;
  return apiError('connector_operation_not_found', message);
}

const MOST_PROBLEMS = 20;

function invalidArgs(problems: readonly { readonly field: string; readonly message: string }[]): ApiError {
  const fields = problems.slice(0, MOST_PROBLEMS);
  const message = fields.map((problem) => `${problem.field} ${problem.message}`).join('; ');
  return apiError('invalid_args', message, { fields });
}

/** The request of an operation, as it would be sent. */
interface RequestToApprove {
  readonly row: ConnectorRow;
  readonly match: ConnectorOperation;
  readonly parts: OperationRequestParts;
  readonly client: RunClient | null;
}

/**
 * Uses up a person's approval for a request, or requests one; null if the operation needs none. Refuses with
 * `too_many_approvals`.
 */
async function approvalOf(
  context: ServiceContext,
  caller: Caller,
  { row, match, parts, client }: RequestToApprove,
): Promise<Result<ApprovalRow | null, ApiError>> {
  const { connector, operation, document } = match;
  if (operation.approval === 'none') return ok(null);
  const body = new TextEncoder().encode(parts.body ?? '');
  const summary = requestSummary(connector, operation, { ...parts, bodyBytes: body.length, document });
  const asked = {
    requestId: randomToken(),
    subject: connectorSubject(row, operation.name),
    fingerprint: fingerprintFor(client, await fingerprintOf(connector, operation, parts, body)),
    summary: whoAsks(client?.name) + summary.toWellFormed(),
    sessionId: client?.connectionId ?? null,
  };
  return askApproval(context, { ...caller, sidecarId: null }, asked);
}

/** Why a request must not be sent; null if it may. */
async function approvalProblem(
  context: ServiceContext,
  caller: Caller,
  approval: ApprovalRow | null,
): Promise<ApiError | null> {
  if (approval === null || approval.state === 'approved') return null;
  const details = { approval_id: approval.id };
  if (approval.state === 'denied')
    return apiError('approval_denied', `the request was denied (approval ${approval.id})`, details);
  const needed = await neededByRules(context, caller, approval);
  const decide =
    needed === null
      ? `decide with POST /v1/approvals/${approval.id}/decide`
      : `the rules of the enterprise say who approves ${approval.id} (${needed})`;
  const message = `the request needs an approval: ${decide}, then run it again within 15 minutes`;
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
