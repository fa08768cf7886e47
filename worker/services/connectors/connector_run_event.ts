import { auditFields } from '../../../shared/connect/audit_fields.ts';
import type { GraphqlDocument } from '../../../shared/connect/graphql_document.ts';
import type { OperationRequestParts } from '../../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../../shared/connect/sanitised_reply.ts';
import type { AuditEventData } from '../../../shared/model/audit_event.ts';
import { type InstalledConnector, type Operation, pathParameters } from '../../../shared/model/connector.ts';
import type { Result } from '../../../shared/model/result.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';

/** What was run. */
export interface RunSubject {
  readonly connector: InstalledConnector;
  readonly operation: Operation;
  readonly args: Readonly<Record<string, unknown>>;
  /** The caller's name for the tool that it runs the operation for. */
  readonly tool: string | undefined;
  /** The connected MCP client that runs it; null if the user does. */
  readonly client: RunClient | null;
}

/** A connected MCP client that runs an operation. */
export interface RunClient {
  readonly id: string;
  readonly connectionId: string;
  /** Its own name for itself. */
  readonly name: string;
}

/** The outcome of a run. */
export interface RunOutcome {
  /** Its request; null if the args did not produce one. */
  readonly parts: OperationRequestParts | null;
  /** What a GraphQL document selects, once it is known to belong to the operation. */
  readonly document?: GraphqlDocument | undefined;
  readonly approvalId: string | null;
  readonly result: Result<SanitisedReply, ApiError>;
}

const MOST_PATH_CHARACTERS = 2_048;

/** The audit data of a run: never a credential, a query or a body value (specification section 4). */
export function runEventData(subject: RunSubject, outcome: RunOutcome): AuditEventData {
  const { connector, operation } = subject;
  const { parts, document, approvalId, result } = outcome;
  const status = result.ok ? result.value.upstreamStatus : null;
  const fields =
    parts === null
      ? {}
      : auditFields(operation, { path: parts.path, givenInputs: listGivenInputs(subject), status, document });
  return {
    'svc.proxy.source': 'generated_connector_shim',
    'svc.proxy.mediation': result.ok ? 'connector' : 'refused',
    'svc.proxy.method': operation.method,
    ...(parts !== null && {
      'svc.proxy.upstream.host': parts.host,
      'svc.proxy.upstream.path': withoutRedacted(operation, parts.path).slice(0, MOST_PATH_CHARACTERS),
    }),
    ...(result.ok
      ? { 'svc.proxy.upstream.status': result.value.upstreamStatus }
      : { 'svc.proxy.reason': result.error.code }),
    'svc.connector.fqn': connector.spec.fqn,
    'svc.connector.version': connector.spec.version,
    'svc.connector.operation': operation.name,
    ...(subject.tool !== undefined && { 'svc.connector.tool': subject.tool }),
    ...(subject.client !== null && { 'svc.mcp.client': subject.client.id }),
    'svc.connector.credential_ref': formatVaultReference(connector.credential.path),
    ...(Object.keys(fields).length > 0 && { 'svc.connector.fields': toWellFormed(fields) }),
    ...(approvalId !== null && { 'svc.approval.id': approvalId }),
  };
}

function listGivenInputs({ operation, args }: RunSubject): ReadonlySet<string> {
  const given = operation.inputs.filter(({ name }) => Object.hasOwn(args, name));
  return new Set(given.map((input) => `${input.in}.${input.name}`));
}

/** The path, with the template's `{name}` in place of values that the spec redacts. */
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

/** A truncated value may end in half a surrogate pair, which the log cannot store. */
function toWellFormed(fields: Readonly<Record<string, string | number | boolean>>) {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value.toWellFormed() : value]),
  );
}
