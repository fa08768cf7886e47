import type { GraphqlType } from '../model/connector.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import type { ConnectorOperation } from './connector_index.ts';
import { describeDocument, type GraphqlDocument } from './graphql_document.ts';
import { readGraphqlRequest } from './graphql_request.ts';

/**
 * Decides which operation a request to a GraphQL endpoint is, from its body. Refuses with `graphql_unreadable` if not every
 * server reads the document the same way, and with `graphql_operation_not_allowed` if the document is none of the candidates
 * or several of them.
 */
export function recogniseGraphql(
  candidates: readonly ConnectorOperation[],
  request: { readonly method: string; readonly query: string | null },
  body: readonly Uint8Array[],
): Result<ConnectorOperation, Refusal> {
  if (candidates.length === 0) return refuse(`no operation of a connector uses ${request.method} there`);
  const document = readGraphqlRequest(request, body);
  if (!document.ok) return err(refusal('graphql_unreadable', `the GraphQL request is refused: ${document.error}`));
  const chosen = chooseGraphqlOperation(candidates, document.value);
  return chosen.ok ? chosen : refuse(chosen.error);
}

function refuse(why: string): Result<never, Refusal> {
  return err(refusal('graphql_operation_not_allowed', `the GraphQL request is refused: ${why}`));
}

/**
 * The operation of a document, among those with the request's method, host and path. Each field must belong to that
 * operation and to no other, so that none is smuggled in under another operation's rule. The error is a sentence.
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
  return err(
    `${describeDocument(document)} belongs to several operations, ${operations.join(' and ')}: send one at a time`,
  );
}

/** Within one connector, an operation that lists the field beats a catch-all. A non-GraphQL operation matches any document. */
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

/** The documents of an operation, in words: `mutation mergePullRequest`, `any other query`. */
export function graphqlWords({ type, fields }: SelectorWords): string {
  return fields === undefined ? `any other ${type}` : `${type} ${fields.join(', ')}`;
}
