import type { GraphqlType } from '../model/connector.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { ConnectorOperation } from './connector_index.ts';
import { describeDocument, type GraphqlDocument } from './graphql_document.ts';
import { readGraphqlRequest } from './graphql_request.ts';

/**
 * Which operation a request to a GraphQL endpoint is, once its body is there. Refuses with `graphql_unreadable` what has no
 * document that every server reads alike, and with `graphql_operation_not_allowed` a document that is none of the candidates
 * or several of them.
 */
export function recogniseGraphql(
  candidates: readonly ConnectorOperation[],
  request: { readonly method: string; readonly query: string | null },
  body: readonly Uint8Array[],
): Result<ConnectorOperation, Refusal> {
  if (candidates.length === 0) return refuse(`no operation of a connector is ${request.method} there`);
  const document = readGraphqlRequest(request, body);
  if (!document.ok) return err(refusal('graphql_unreadable', `the GraphQL request is refused: ${document.error}`));
  const chosen = chooseGraphqlOperation(candidates, document.value);
  return chosen.ok ? chosen : refuse(chosen.error);
}

function refuse(why: string): Result<never, Refusal> {
  return err(refusal('graphql_operation_not_allowed', `the GraphQL request is refused: ${why}`));
}

/**
 * The operation that a document is, of those whose method, host and path are its request's: each of its fields has to be of
 * that one and of no other, so that nothing is carried along by an operation with another rule. The error is a sentence.
 */
function chooseGraphqlOperation(
  candidates: readonly ConnectorOperation[],
  document: GraphqlDocument,
): Result<ConnectorOperation, string> {
  const connectors = [...new Set(candidates.map(({ connector }) => connector))];
  const ofConnectors = connectors.map((each) => candidates.filter(({ connector }) => connector === each));
  const names = document.fields.size === 0 ? ['__typename'] : [...document.fields.keys()];
  const chosen = new Set<ConnectorOperation>();
  for (const name of names) {
    const covering = ofConnectors.flatMap((own) => findCoveringOperations(own, document, name));
    if (covering.length === 0) return err(`no operation of a connector is the ${document.type} ${name}`);
    for (const operation of covering) chosen.add(operation);
  }
  const [only] = chosen;
  if (only !== undefined && chosen.size === 1) return ok({ ...only, document });
  const operations = Array.from(chosen, ({ connector, operation }) => `${operation.name} of ${connector.spec.fqn}`);
  return err(`${describeDocument(document)} is several operations, ${operations.join(' and ')}: send one at a time`);
}

/** Of one connector, an operation that lists the field comes before one of every field. One that is no GraphQL takes any. */
function findCoveringOperations(
  own: readonly ConnectorOperation[],
  { type }: GraphqlDocument,
  name: string,
): readonly ConnectorOperation[] {
  const ofType = own.filter(({ operation: { graphql } }) => graphql === undefined || graphql.type === type);
  const listed = ofType.filter(({ operation: { graphql } }) => graphql?.fields?.includes(name));
  return listed.length > 0 ? listed : ofType.filter(({ operation: { graphql } }) => graphql?.fields === undefined);
}

interface SelectorWords {
  readonly type: GraphqlType;
  readonly fields?: readonly string[] | undefined;
}

/** Which documents an operation is, in words: `mutation mergePullRequest`, `any other query`. */
export function graphqlWords({ type, fields }: SelectorWords): string {
  return fields === undefined ? `any other ${type}` : `${type} ${fields.join(', ')}`;
}
