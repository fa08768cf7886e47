import { auditFields } from '../../shared/connect/audit_fields.ts';
import { buildOperationRequest, type OperationRequestParts } from '../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../shared/connect/sanitised_reply.ts';
import type { AuditEvent, AuditEventData } from '../../shared/model/audit_event.ts';
import { type InstalledConnector, type Operation, pathParameters } from '../../shared/model/connector.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import type { RunReply, RunRequest } from '../../shared/wire/connectors.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import { didYouMean } from '../../shared/wire/near_match.ts';
import { type ConnectorRow, findConnectorsNamed, type WithCredential } from '../store/connectors.ts';
import { type Caller, visibleOwners } from './caller.ts';
import { commit } from './commit.ts';
import { callUpstream } from './connector_call.ts';
import { connectorCredential } from './connector_access.ts';
import { toInstalled } from './connector_records.ts';
import { toBase64 } from './encoding.ts';
import { controlChain } from './policy_change.ts';
import { freshId, nowText, type ServiceContext } from './service_context.ts';

/** A run of an operation that exists: from here on it is audited, whatever becomes of it. */
interface Run {
  readonly row: WithCredential<ConnectorRow>;
  readonly connector: InstalledConnector;
  readonly operation: Operation;
  readonly request: RunRequest;
}

/** How a run ended. `parts`: the request it made; null when its args made none. */
interface Outcome {
  readonly parts: OperationRequestParts | null;
  readonly result: Result<SanitisedReply, ApiError>;
}

/**
 * Runs an operation of an installed connector as the caller (specification section 4, Connector operations). Refuses with
 * `connector_operation_not_found`, `invalid_args`, `approval_required`, `approval_denied`, `binding_required`,
 * `credential_unavailable`, `reauthorisation_required` and the `upstream_` codes.
 */
export async function runOperation(
  context: ServiceContext,
  caller: Caller,
  request: RunRequest,
): Promise<Result<RunReply, ApiError>> {
  const run = await recognise(context, caller, request);
  if (!run.ok) return run;
  const outcome = await attempt(context, caller, run.value);
  const recorded = await record(context, caller, run.value, outcome);
  if (!recorded.ok) return recorded;
  if (!outcome.result.ok) return outcome.result;
  return ok(toReply(run.value, recorded.value, outcome.result.value));
}

async function recognise(context: ServiceContext, caller: Caller, request: RunRequest): Promise<Result<Run, ApiError>> {
  const rows = await findConnectorsNamed(context.database, visibleOwners(caller), request.connector_fqn);
  const row = rows.find(({ connector }) => connector.ownerId === caller.userId) ?? rows[0];
  if (row === undefined) return err(noConnector());
  const connector = toInstalled(row);
  const operation = connector.spec.operations.find(({ name }) => name === request.operation);
  return operation === undefined ? err(noOperation(connector, request)) : ok({ row, connector, operation, request });
}

async function attempt(context: ServiceContext, _caller: Caller, run: Run): Promise<Outcome> {
  const { connector, operation, request } = run;
  const built = buildOperationRequest(connector, operation, request.args, request.host);
  if (!built.ok) return { parts: null, result: err(invalidArgs(built.error)) };
  const parts = built.value;
  if (operation.approval === 'required') return { parts, result: err(approvalRequired(run)) };
  const credential = await connectorCredential(context, run.row);
  if (!credential.ok) return { parts, result: credential };
  return { parts, result: await send(context, parts, credential.value) };
}

async function send(
  context: ServiceContext,
  parts: OperationRequestParts,
  credential: Secret,
): Promise<Result<SanitisedReply, ApiError>> {
  const called = await callUpstream(context.outbound, parts, credential);
  return called.ok ? called : err(apiError(called.error.reason, called.error.message));
}

/** Writes the run into the log; its answer waits for that. */
async function record(
  context: ServiceContext,
  caller: Caller,
  run: Run,
  outcome: Outcome,
): Promise<Result<string, ApiError>> {
  const event: AuditEvent = {
    id: freshId(context, 'evt'),
    type: outcome.result.ok ? 'connector.proxy.proxied' : 'connector.proxy.rejected',
    time: nowText(context),
    sidecar_id: null,
    session_id: null,
    actor: caller.userId,
    data: { ...identity(run), ...(outcome.parts && destination(run, outcome.parts)), ...ending(run, outcome) },
  };
  return commit(context, controlChain(caller), async () => ok({ statements: [], events: [event], value: event.id }));
}

function identity({ connector, operation }: Run): AuditEventData {
  return {
    'svc.proxy.source': 'generated_connector_shim',
    'svc.connector.fqn': connector.spec.fqn,
    'svc.connector.version': connector.spec.version,
    'svc.connector.operation': operation.name,
    'svc.connector.credential_ref': formatVaultReference(connector.credential.path),
    'svc.proxy.method': operation.method,
  };
}

const MOST_PATH_CHARACTERS = 2_048;

function destination({ operation }: Run, { host, path }: OperationRequestParts): AuditEventData {
  const shown = withoutRedacted(operation, path).slice(0, MOST_PATH_CHARACTERS);
  return { 'svc.proxy.upstream.host': host, 'svc.proxy.upstream.path': shown };
}

/** The path with the template's `{name}` in place of a value that the spec wants redacted. */
function withoutRedacted({ path: template, audit }: Operation, path: string): string {
  const redacted = new Set(audit.flatMap(({ source, redact }) => (redact ? [source] : [])));
  if (!pathParameters(template).some((name) => redacted.has(`path.${name}`))) return path;
  const names = template.split('/');
  const segments = path.split('/').map((segment, index) => {
    const name = names[index] ?? '';
    return name.startsWith('{') && redacted.has(`path.${name.slice(1, -1)}`) ? name : segment;
  });
  return segments.join('/');
}

function ending(run: Run, { parts, result }: Outcome): AuditEventData {
  const status = result.ok ? result.value.upstreamStatus : null;
  const fields =
    parts === null ? {} : auditFields(run.operation, { path: parts.path, given: givenInputs(run), status });
  return {
    'svc.proxy.mediation': result.ok ? 'connector' : 'refused',
    ...(result.ok
      ? { 'svc.proxy.upstream.status': result.value.upstreamStatus }
      : { 'svc.proxy.reason': result.error.code }),
    ...(Object.keys(fields).length > 0 && { 'svc.connector.fields': wellFormed(fields) }),
  };
}

/** A value that was cut may end in half of a character, which no log can hold. */
function wellFormed(fields: Readonly<Record<string, string | number | boolean>>) {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value.toWellFormed() : value]),
  );
}

function givenInputs({ operation, request }: Run): ReadonlySet<string> {
  const given = operation.inputs.filter(({ name }) => Object.hasOwn(request.args, name));
  return new Set(given.map((input) => `${input.in}.${input.name}`));
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
  const message = 'no connector of that connector_fqn is installed: list them with GET /v1/connectors';
  return apiError('connector_operation_not_found', message);
}

function noOperation({ spec }: InstalledConnector, { operation }: RunRequest): ApiError {
  const names = spec.operations.map(({ name }) => name);
  const message = `${spec.fqn} has no operation of that name${didYouMean(operation, names)}`;
  return apiError('connector_operation_not_found', message);
}

function approvalRequired({ connector, operation }: Run): ApiError {
  return apiError('approval_required', `${connector.spec.fqn} ${operation.name} runs only with an approval`);
}

function invalidArgs(fields: readonly { readonly field: string; readonly message: string }[]): ApiError {
  const shown = fields.slice(0, 20);
  return apiError('invalid_args', shown.map(({ field, message }) => `${field} ${message}`).join('; '), {
    fields: shown,
  });
}
