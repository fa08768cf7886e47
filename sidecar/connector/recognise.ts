import type { ConnectorOperation, OperationMatch } from '../../shared/connect/connector_index.ts';
import { evadesConnector, matchOperation } from '../../shared/connect/connector_index.ts';
import { confirmOperation } from '../../shared/connect/confirm_operation.ts';
import { recogniseJson } from '../../shared/connect/json_operation.ts';
import type { OperationRequestParts } from '../../shared/connect/operation_request.ts';
import { buildOperationRequest } from '../../shared/connect/operation_request.ts';
import type { InstalledConnector, Operation } from '../../shared/model/connector.ts';
import { programOfLogin, runnableOperations, sendsBody } from '../../shared/model/connector.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { hostOnPort, HTTPS_PORT } from '../../shared/net/host_port.ts';
import { parseTarget } from '../../shared/net/http/target.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import type { RunRequest } from '../../shared/wire/connectors/connectors.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import type { RunRefusal } from './run_ports.ts';

/** An operation that exists, and the request to send for it. From here on the outcome is audited. */
export interface Recognised {
  readonly match: ConnectorOperation;
  readonly request: Result<OperationRequestParts, RunRefusal>;
  /** The names of its query and body inputs, as `<place>.<input>`. */
  readonly givenInputs: ReadonlySet<string>;
}

/** Finds the operation that a run names and builds its request from the args. Refuses with `connector_operation_not_found`. */
export function recogniseRun(policy: Policy, run: RunRequest): Result<Recognised, RunRefusal> {
  const connector = policy.connectorNamed(run.connector_fqn);
  if (connector === undefined) {
    return refuseNotFound('no connector with that connector_fqn is installed: list them with "svc connector list"');
  }
  const { fqn } = connector.spec;
  const operations = runnableOperations(connector.spec);
  const operation = operations.find(({ name }) => name === run.operation);
  if (operation === undefined) {
    const names = operations.map(({ name }) => name);
    return refuseNotFound(`${fqn} has no operation with that name${didYouMean(run.operation, names)}`);
  }
  const givenInputs = listGivenArgs(operation, run.args);
  const named = { connector, operation };
  const built = buildOperationRequest(connector, operation, run.args, run.host);
  if (!built.ok) return ok({ match: named, request: invalidArgs(built.error), givenInputs });
  if (connector.inactive === true) return ok({ match: named, request: refuseInactive(connector), givenInputs });
  const confirmed = confirmOperation(policy.connectors, named, built.value);
  if (confirmed.ok) return ok({ match: confirmed.value, request: built, givenInputs });
  return ok({ match: named, request: invalidArgs([{ field: 'args', message: confirmed.error }]), givenInputs });
}

/** A request as the data plane's own clients describe it: without headers, body and query. */
export interface BoundaryRequest {
  readonly connector_fqn: string;
  readonly operation: string;
  readonly method: string;
  readonly upstream_url: string;
}

/**
 * Resolves a candidate request against the installed specs by method, host and path (specification section 4, Sandbox proxy
 * request boundary). Refuses with `connector_operation_not_found`, `ambiguous_target` and `invalid_request`.
 */
export function recogniseRequest(policy: Policy, asked: BoundaryRequest): Result<Recognised, RunRefusal> {
  const { method, upstream_url: url } = asked;
  const target = parseTarget(url, method);
  if (!target.ok || target.value.authority === null) return invalidUrl('must be a complete https URL');
  const { authority, path, query } = target.value;
  if (query !== null || url.includes('#')) {
    return invalidUrl(
      'has a query or a fragment, which this endpoint does not accept: use /v1/connector-operations/run',
    );
  }
  const made = { method, host: hostOnPort(authority.host, authority.port ?? HTTPS_PORT), path };
  if (evadesConnector(policy.connectors, made)) {
    return err({ reason: 'ambiguous_target', message: 'upstream_url: servers can read its path in more than one way' });
  }
  const found = matchOperation(policy.connectors, made);
  const candidates = withoutBody(found);
  const match = candidates.find(
    ({ connector, operation }) =>
      connector.spec.fqn === asked.connector_fqn &&
      runnableOperations(connector.spec).includes(operation) &&
      operation.name === asked.operation,
  );
  if (match === undefined)
    return refuseNotFound('method and upstream_url do not match this operation, or match another one too');
  return ok({ match, request: requestWithoutArgs(match.operation, made), givenInputs: new Set() });
}

/** The operations that a request without a body may be. The document of a GraphQL request is an arg that is missing. */
function withoutBody(found: OperationMatch): readonly ConnectorOperation[] {
  if (found.kind === 'operation') return [found.match];
  if (found.kind === 'graphql') return found.candidates;
  const match = found.kind === 'json' ? recogniseJson(found.candidates, []) : null;
  return match?.ok === true ? [match.value] : [];
}

function requestWithoutArgs(
  operation: Operation,
  { host, path }: { readonly host: string; readonly path: string },
): Result<OperationRequestParts, RunRefusal> {
  const missing = operation.inputs.filter((input) => input.required && input.in !== 'path');
  if (missing.length > 0) {
    const message = 'is missing, and this endpoint accepts no query and no body: use /v1/connector-operations/run';
    return invalidArgs(missing.map(({ name }) => ({ field: `args.${name}`, message })));
  }
  const body = sendsBody(operation.method) ? '{}' : null;
  return ok({ method: operation.method, host, path, query: null, body });
}

function listGivenArgs({ inputs }: Operation, args: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  return new Set(inputs.filter(({ name }) => Object.hasOwn(args, name)).map((input) => `${input.in}.${input.name}`));
}

function refuseInactive({ id, spec }: InstalledConnector): Result<never, RunRefusal> {
  const program = programOfLogin(spec.fqn);
  const command = spec.credential.kind === 'api_key' ? 'connector credential set' : 'connector authorize';
  const way = program === null ? `svc ${command} ${spec.fqn}` : `svc login ${program} --import`;
  const message = `${spec.fqn} is inactive: it has no credential yet; a person gives it one with: ${way}`;
  return err({ reason: 'binding_required', message, details: { connector_id: id } });
}

const MOST_PROBLEMS = 20;

function invalidArgs(
  problems: readonly { readonly field: string; readonly message: string }[],
): Result<never, RunRefusal> {
  const fields = problems.slice(0, MOST_PROBLEMS);
  const message = fields.map((problem) => `${problem.field} ${problem.message}`).join('; ');
  return err({ reason: 'invalid_args', message, details: { fields } });
}

function invalidUrl(problem: string): Result<never, RunRefusal> {
  return err({ reason: 'invalid_request', message: `upstream_url ${problem}` });
}

function refuseNotFound(message: string): Result<never, RunRefusal> {
  return err({ reason: 'connector_operation_not_found', message });
}
