import { evadesConnector, matchOperation, type ConnectorIndex, type ConnectorOperation } from './connector_index.ts';

/** What of a request that was made of an operation's args decides which operation it is. */
interface MadeRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
}

/**
 * True when the request that an operation's args make is, or may be read as, another operation: `/items/{id}` with
 * `latest` for the id, where `/items/latest` is an operation of its own with an approval of its own. Operations that are
 * equally well meant may be run by name, unless that would go round an approval.
 */
export function isAnotherOperation(
  index: ConnectorIndex,
  { operation }: ConnectorOperation,
  made: MadeRequest,
): boolean {
  if (evadesConnector(index, made)) return true;
  const found = matchOperation(index, made);
  if (found.kind === 'operation') return found.match.operation !== operation;
  if (found.kind === 'none') return true;
  const isOne = found.candidates.some((candidate) => candidate.operation === operation);
  const isGuarded = found.candidates.some((candidate) => candidate.operation.approval === 'required');
  return !isOne || (isGuarded && operation.approval !== 'required');
}
