import { err, ok, type Result } from '../model/result.ts';
import { evadesConnector, matchOperation, type ConnectorIndex, type ConnectorOperation } from './connector_index.ts';
import { recogniseGraphql } from './graphql_operation.ts';

/** What of a request that was made of an operation's args decides which operation it is. */
interface MadeRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly query: string | null;
  readonly body: string | null;
}

const ANOTHER = 'make the request of another operation, or one that could be read as it';

/**
 * The operation that a run's request is, which has to be the one that was named: by no arg is another one run, neither by a
 * path nor by a GraphQL document. The error is the rest of a sentence that begins with `args`.
 */
export function confirmOperation(
  index: ConnectorIndex,
  named: ConnectorOperation,
  made: MadeRequest,
): Result<ConnectorOperation, string> {
  if (named.operation.graphql === undefined) return isAnotherOperation(index, named, made) ? err(ANOTHER) : ok(named);
  const found = evadesConnector(index, made) ? null : matchOperation(index, made);
  if (found?.kind !== 'graphql') return err(ANOTHER);
  const recognised = recogniseGraphql(found.candidates, made, [new TextEncoder().encode(made.body ?? '')]);
  if (!recognised.ok) return err(`make no request of this operation: ${recognised.error.message}`);
  return recognised.value.operation === named.operation ? recognised : err(ANOTHER);
}

/**
 * True when the request that an operation's args make is, or may be read as, another operation: `/items/{id}` with
 * `latest` for the id, where `/items/latest` is an operation of its own with an approval of its own. Operations that are
 * equally well meant may be run by name, unless that would go round an approval.
 */
function isAnotherOperation(index: ConnectorIndex, { operation }: ConnectorOperation, made: MadeRequest): boolean {
  if (evadesConnector(index, made)) return true;
  const found = matchOperation(index, made);
  if (found.kind === 'operation') return found.match.operation !== operation;
  if (found.kind !== 'ambiguous') return true;
  const isOne = found.candidates.some((candidate) => candidate.operation === operation);
  const isGuarded = found.candidates.some((candidate) => candidate.operation.approval === 'required');
  return !isOne || (isGuarded && operation.approval !== 'required');
}
