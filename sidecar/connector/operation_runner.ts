import type {
  CertificateFacts,
  ExchangeFacts,
  ExchangeResult,
  RunRefusalReason,
} from '../../shared/audit/exchange_event.ts';
import { exchangeEvent } from '../../shared/audit/exchange_event.ts';
import type { OperationRequestParts } from '../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../shared/connect/sanitised_reply.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { RunReply, RunRequest } from '../../shared/wire/connectors/connectors.ts';
import { askApproval } from '../exchange/ask_approval.ts';
import { checkConnectorAccount } from '../exchange/chosen_account.ts';
import {
  bothInForce,
  checkCertificate,
  refusedCertificate,
  takeCertificate,
  withCertificateFacts,
} from '../exchange/client_certificate.ts';
import { connectorBinding } from '../exchange/connector_binding.ts';
import { credentialsFor } from '../exchange/exchange_ports.ts';
import { connectorInForce, type InForce, untilEnd } from '../exchange/in_force.ts';
import { pauseEvent } from '../exchange/masked_replies.ts';
import { resolveMaterial } from '../exchange/material.ts';
import { auditUnavailable } from '../exchange/outcome.ts';
import type { PolicySource } from '../ports.ts';
import { callUpstream } from './call_upstream.ts';
import type { BoundaryRequest, Recognised } from './recognise.ts';
import { recogniseRequest, recogniseRun } from './recognise.ts';
import type { RunCaller, RunPorts, RunRefusal } from './run_ports.ts';

export type RunResult = Result<RunReply, RunRefusal>;

/** Runs operations of the installed connectors for callers of the local API. */
export interface OperationRunner {
  /** `POST /v1/connector-operations/run`. */
  run(request: RunRequest, caller: RunCaller): Promise<RunResult>;
  /** `POST /v1/sandbox-proxy/requests`. */
  request(request: BoundaryRequest, caller: RunCaller): Promise<RunResult>;
}

export function createOperationRunner(ports: RunPorts): OperationRunner {
  return {
    run: (request, caller) =>
      runRecognised((policy) => recogniseRun(policy, request), { ...caller, tool: request.tool }, ports),
    request: (request, caller) => runRecognised((policy) => recogniseRequest(policy, request), caller, ports),
  };
}

/** A caller, and the tool name under which it runs the operation. */
type NamedCaller = RunCaller & { readonly tool?: string | undefined };

/** The outcome of a run. */
interface RunOutcome {
  readonly approvalId: string | null;
  readonly result: Result<SanitisedReply, RunRefusal>;
  readonly certificate?: CertificateFacts;
}

/**
 * policy -> recognise -> account -> approval -> credential -> call -> record. Every attempt on an operation that exists is recorded
 * before the answer is sent.
 */
async function runRecognised(
  recognise: (policy: Policy) => Result<Recognised, RunRefusal>,
  caller: NamedCaller,
  ports: RunPorts,
): Promise<RunResult> {
  if (!ports.audit.accepting) return countRun(err(auditUnavailable()), ports);
  const policy = ports.exchange.policy.current();
  if (!policy.ok) return refuseUnrecognised(policy.error, caller, ports);
  const recognised = recognise(policy.value);
  if (!recognised.ok) return refuseUnrecognised(recognised.error, caller, ports);
  const source = ports.exchange.policy;
  const inForce = runInForce(source, policy.value, recognised.value);
  const refused = refuseUnasked(caller, policy.value, recognised.value, ports);
  const outcome = refused ?? (await attempt(recognised.value, inForce, caller, ports));
  return countRun(recordRun(recognised.value, outcome, caller, ports), ports);
}

function refuseUnrecognised(refused: RunRefusal, caller: NamedCaller, ports: RunPorts): RunResult {
  const { reason } = refused;
  if (!UNRECOGNISED.has(reason)) recordExchange(factsOf(caller, null), { kind: 'refused', reason }, ports);
  return countRun(err(refused), ports);
}

/** A request that names no operation is not an attempt on one. */
const UNRECOGNISED: ReadonlySet<RunRefusalReason> = new Set(['connector_operation_not_found', 'invalid_request']);

function runInForce(source: PolicySource, decided: Policy, { match, request }: Recognised): InForce {
  const host = request.ok ? request.value.host : match.connector.spec.fqn;
  return connectorInForce(source, decided, host, match.connector);
}

/**
 * What is refused before anybody is asked; null for the rest. The same accounts as at the proxy: an agent can run there what it can
 * run here.
 */
function refuseUnasked(
  { choice }: RunCaller,
  policy: Policy,
  { match, request }: Recognised,
  { exchange }: RunPorts,
): RunOutcome | null {
  if (!request.ok) return null;
  const { host, method } = request.value;
  const account = checkConnectorAccount({ choice, host, request: null }, policy, match.connector);
  if (!account.ok) return { approvalId: null, result: account };
  const certified = checkCertificate(policy, { method, fields: [] }, true, { host });
  return certified.ok ? null : { approvalId: null, result: certified, ...refusedCertificate({ host }, exchange) };
}

async function attempt(
  { match, request }: Recognised,
  inForce: InForce,
  caller: RunCaller,
  ports: RunPorts,
): Promise<RunOutcome> {
  if (!request.ok) return { approvalId: null, result: request };
  const parts = request.value;
  const { approvals, materials } = ports.exchange;
  const credentials = credentialsFor(ports.exchange, caller.sessionId);
  const binding = connectorBinding(match.connector, parts.host);
  const { counts } = ports.exchange;
  const unasked = counts.refuse(binding, caller.sessionId);
  if (unasked !== null) return { approvalId: null, result: err(unasked) };
  const approval = await askApproval(
    match,
    approvalRequestOf(parts, caller),
    { approvals, credentials, materials },
    caller.signal,
  );
  const approvalId = approval.ok ? approval.value : approval.error.approvalId;
  if (!approval.ok) return { approvalId, result: err(toRunRefusal(match, approval.error.refusal, approvalId, ports)) };
  const paused = ports.exchange.masked.refuse(caller.sessionId, binding.id);
  if (paused !== null) return { approvalId, result: err(paused) };
  const overLimit = counts.take(binding, caller.sessionId);
  if (overLimit !== null) return { approvalId, result: err(overLimit) };
  const material = await resolveMaterial(binding, parts.host, credentials, materials);
  if (!material.ok) return { approvalId, result: err(toRunRefusal(match, material.error, null, ports)) };
  const lapsed = inForce();
  if (lapsed !== null) return { approvalId, result: err(lapsed) };
  const asking = { head: { method: parts.method, fields: [] }, isOperation: true };
  const place = { host: parts.host, credentialsId: caller.sessionId };
  const taken = await takeCertificate(asking, place, ports.exchange);
  if (!taken.ok) return { approvalId, result: err(taken.error), ...refusedCertificate(place, ports.exchange) };
  const certificate = taken.value;
  const admitted = {
    parts,
    binding,
    material: material.value,
    inForce: untilEnd(bothInForce(inForce, certificate), material.value.hasEnded, parts.host),
    certificate,
  };
  const onMasked = (): void => noteMasked(caller.sessionId, binding.id, parts.host, ports);
  const meter = counts.meter(binding, caller.sessionId);
  meter?.add(Buffer.byteLength(parts.body ?? ''));
  const result = await callUpstream(admitted, caller.signal, onMasked, ports);
  if (result.ok) meter?.add(result.value.body.length);
  return withCertificateFacts({ approvalId, result }, certificate);
}

function noteMasked(sessionId: string | null, binding: string, host: string, { exchange, audit }: RunPorts): void {
  if (sessionId === null) return;
  const state = exchange.masked.count({ sessionId, binding, host });
  if (state === 'now_paused') audit.record(pauseEvent('paused', sessionId, host));
}

function approvalRequestOf(parts: OperationRequestParts, { sessionId }: RunCaller): Parameters<typeof askApproval>[1] {
  const { method, host, path, query, body } = parts;
  return {
    method,
    host,
    target: query === null ? path : `${path}?${query}`,
    contentType: body === null ? '' : 'application/json',
    body: body === null ? [] : [Buffer.from(body, 'utf8')],
    sessionId,
  };
}

/** The refusal with the API's code: a connector without a credential has another code than a control plane that is down. */
function toRunRefusal(
  { connector }: Recognised['match'],
  { reason, message }: RunRefusal,
  approvalId: string | null,
  { exchange }: RunPorts,
): RunRefusal {
  const isMissing = reason === 'credential_unavailable' && !exchange.credentials.isStored(connector.credential);
  if (isMissing) return { reason: 'binding_required', message, details: { connector_id: connector.id } };
  return approvalId === null ? { reason, message } : { reason, message, details: { approval_id: approvalId } };
}

function recordRun(
  { match, request, givenInputs }: Recognised,
  { approvalId, result, certificate }: RunOutcome,
  caller: NamedCaller,
  ports: RunPorts,
): RunResult {
  const facts = {
    ...factsOf(caller, request.ok ? request.value : null),
    operation: { match, givenInputs, approvalId },
    certificate,
  };
  const ended: ExchangeResult = result.ok
    ? { kind: 'replied', mediation: 'connector', status: result.value.upstreamStatus }
    : { kind: 'refused', reason: result.error.reason };
  const auditId = recordExchange({ ...facts, method: match.operation.method }, ended, ports);
  if (!result.ok) return result;
  return ok({
    status: 'proxied',
    audit_id: auditId ?? '',
    connector_fqn: match.connector.spec.fqn,
    operation: match.operation.name,
    upstream_status: result.value.upstreamStatus,
    content_type: result.value.contentType,
    body_base64: Buffer.from(result.value.body).toString('base64'),
  });
}

function factsOf({ source, sessionId, tool }: NamedCaller, parts: OperationRequestParts | null): ExchangeFacts {
  const { host = null, method = null, path = null } = parts ?? {};
  return { source, sessionId, host, method, path, binding: null, tool };
}

function recordExchange(facts: ExchangeFacts, result: ExchangeResult, { audit }: RunPorts): string | null {
  const event = exchangeEvent(facts, result);
  return event === null ? null : audit.record(event);
}

function countRun(result: RunResult, { metrics }: RunPorts): RunResult {
  if (result.ok) metrics.increment('svc_proxy_requests_total', { mediation: 'connector' });
  else metrics.increment('svc_proxy_refusals_total', { reason: result.error.reason });
  return result;
}
