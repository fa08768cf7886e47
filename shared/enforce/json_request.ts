import { foldName, foldPointer } from '../model/json_names.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { methodOverridesOfQuery } from '../net/http/method_override.ts';
import { findBodyFault, findHeadFault, type InspectedRequest } from './inspected_head.ts';

/** Types that JSON Merge Patch and vendors use are read as JSON too. */
const JSON_TYPE = /^application\/(?:[a-z0-9][a-z0-9._-]*\+)?json(?:[ \t]*;[ \t]*charset="?utf-8"?)?[ \t]*$/i;

/**
 * Checks a request whose JSON body decides which operation it is, before the body is read: a server must not take a value at
 * one of the pointers from elsewhere, or the body for something else. Refuses with `json_unreadable`.
 */
export function enforceJsonRequest(request: InspectedRequest, pointers: readonly string[]): Result<void, Refusal> {
  const fault =
    findHeadFault(request, 'messages') ??
    findQueryFault(request, pointers) ??
    (request.hasBody ? findBodyFault(request, JSON_TYPE) : null);
  return fault === null ? ok(undefined) : err(refusal('json_unreadable', `the request is refused: ${fault}`));
}

/** Many frameworks merge the parameters of query and body. Some treat `;` as `&`. */
function findQueryFault({ method, query }: InspectedRequest, pointers: readonly string[]): string | null {
  if (query === null) return null;
  if (methodOverridesOfQuery(method, query).length > 0)
    return 'the query parameter _method can turn it into another request';
  const names = new Set(Array.from(new URLSearchParams(query.replaceAll(';', '&')).keys(), (name) => foldName(name)));
  const isSent = (pointer: string): boolean =>
    foldPointer(pointer)
      .flat()
      .some((name) => names.has(name));
  const taken = pointers.find(isSent);
  return taken === undefined ? null : `servers may read ${taken} from its query: send it in the body only`;
}
