import { err, ok, type Result } from '../model/result.ts';
import {
  evadesConnector,
  isByBody,
  matchOperation,
  type ConnectorIndex,
  type ConnectorOperation,
  type OperationMatch,
} from './connector_index.ts';
import { recogniseGraphql } from './graphql_operation.ts';
import { recogniseJson } from './json_operation.ts';

/** The parts of a request made from args that decide which operation it is. */
interface MadeRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly query: string | null;
  readonly body: string | null;
}

const ANOTHER = 'make the request another operation, or one that could be read as another';

/**
 * The operation of a run's request, which must be the named one: no arg may turn it into another, neither by path nor by
 * GraphQL document or JSON body. The error is a predicate for the subject `args`.
 */
export function confirmOperation(
  index: ConnectorIndex,
  named: ConnectorOperation,
  made: MadeRequest,
): Result<ConnectorOperation, string> {
  if (evadesConnector(index, made)) return err(ANOTHER);
  const found = matchOperation(index, made);
  if (!isByBody(found)) return isAnotherOperation(found, named) ? err(ANOTHER) : ok(named);
  const body = [new TextEncoder().encode(made.body ?? '')];
  const recognised =
    found.kind === 'graphql' ? recogniseGraphql(found.candidates, made, body) : recogniseJson(found.candidates, body);
  if (!recognised.ok) return err(`do not make a request of this operation: ${recognised.error.message}`);
  return recognised.value.operation === named.operation ? recognised : err(ANOTHER);
}

/**
 * True if the request made from an operation's args is another operation: `/items/{id}` with `latest` for the id, if
 * `/items/latest` is an operation with its own approval. Operations that match equally well may be run by name, unless that
 * would bypass an approval.
 */
function isAnotherOperation(found: OperationMatch, { operation }: ConnectorOperation): boolean {
  if (found.kind === 'operation') return found.match.operation !== operation;
  if (found.kind !== 'ambiguous') return true;
  const isOne = found.candidates.some((candidate) => candidate.operation === operation);
  const isGuarded = found.candidates.some((candidate) => candidate.operation.approval === 'required');
  return !isOne || (isGuarded && operation.approval !== 'required');
}
