import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isMethodOverrideHeader } from '../net/http/method_override.ts';

/** A request to a GraphQL endpoint, without its body. */
export interface GraphqlRequest {
  readonly method: string;
  /** Without the `?`; null when there is none. */
  readonly query: string | null;
  /** Names are in lower case. */
  readonly fields: readonly { readonly name: string; readonly value: string }[];
  readonly hasBody: boolean;
}

const JSON_TYPE = /^application\/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?[ \t]*$/i;

/**
 * Checks a request to a GraphQL endpoint before its body is read. It must state in exactly one way where its document is and
 * how it is encoded; otherwise a server could run another document than the inspected one. Refuses with
 * `graphql_unreadable`.
 */
export function enforceGraphqlRequest(request: GraphqlRequest): Result<void, Refusal> {
  const fault = headFault(request) ?? (request.method === 'GET' ? getFault(request) : postFault(request));
  return fault === null
    ? ok(undefined)
    : err(refusal('graphql_unreadable', `the GraphQL request is refused: ${fault}`));
}

function headFault({ fields }: GraphqlRequest): string | null {
  if (fields.some(({ name }) => name === 'upgrade'))
    return 'an upgraded connection carries documents that are not inspected';
  const override = fields.find(({ name }) => isMethodOverrideHeader(name));
  return override === undefined ? null : `the header ${override.name} can turn it into another request`;
}

function getFault({ hasBody }: GraphqlRequest): string | null {
  return hasBody ? 'a GET has its document in the query: send it without a body' : null;
}

function postFault({ query, fields }: GraphqlRequest): string | null {
  if (query !== null) return 'servers may read its document from its query: send it in the body only';
  if (fields.some(({ name }) => name === 'content-encoding')) return 'its body is encoded: send it unencoded';
  const types = fields.filter(({ name }) => name === 'content-type').map(({ value }) => value);
  return types.length === 1 && JSON_TYPE.test(types[0] ?? '')
    ? null
    : 'its body has to be one JSON object, and its only Content-Type application/json, in UTF-8';
}
