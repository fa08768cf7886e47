import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { findBodyFault, findHeadFault, type InspectedRequest } from './inspected_head.ts';

const JSON_TYPE = /^application\/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?[ \t]*$/i;

/**
 * Checks a request to a GraphQL endpoint before its body is read. It must state in exactly one way where its document is and
 * how it is encoded; otherwise a server could run another document than the inspected one. Refuses with
 * `graphql_unreadable`.
 */
export function enforceGraphqlRequest(request: InspectedRequest): Result<void, Refusal> {
  const fault =
    findHeadFault(request, 'documents') ?? (request.method === 'GET' ? getFault(request) : postFault(request));
  return fault === null
    ? ok(undefined)
    : err(refusal('graphql_unreadable', `the GraphQL request is refused: ${fault}`));
}

function getFault({ hasBody }: InspectedRequest): string | null {
  return hasBody ? 'a GET has its document in the query: send it without a body' : null;
}

function postFault(request: InspectedRequest): string | null {
  return request.query === null
    ? findBodyFault(request, JSON_TYPE)
    : 'servers may read its document from its query: send it in the body only';
}
