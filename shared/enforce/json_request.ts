import { foldName, foldPointer } from '../model/json_names.ts';
import { refusal, type Refusal } from '../model/refusal.ts';
import { err, ok, type Result } from '../model/result.ts';
import { methodOverridesOfQuery } from '../net/http/method_override.ts';
import { findBodyFault, findHeadFault, type InspectedRequest } from './inspected_head.ts';

/**
 * Exactly as clients write it. A server that does not know the type ignores the body and uses its defaults: Gin compares it
 * with its letter case, Express and Rails read no other `+json`, and Express no parameter that is malformed.
 */
const JSON_TYPE = /^application\/json(?:; ?charset=(?:[Uu][Tt][Ff]-8|"[Uu][Tt][Ff]-8"))?$/;
/** A pointer has fewer names. The rest of a parameter's name is not read, so that a long one costs little. */
const MOST_PARTS = 32;

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
  const sent = Array.from(new URLSearchParams(query.replaceAll(';', '&')).keys());
  const names = new Set(sent.flatMap(foldParameter));
  const isSent = (pointer: string): boolean =>
    foldPointer(pointer)
      .flat()
      .some((name) => names.has(name));
  const taken = pointers.find(isSent);
  return taken === undefined ? null : `servers may read ${taken} from its query: send it in the body only`;
}

/**
 * The folded names that servers could take for a parameter's: its own, and where it continues, what is before that. `a[0]` and
 * `a.0` are a list at `a`, which some servers read as its one item; C ends a name at NUL.
 */
function foldParameter(name: string): readonly string[] {
  const parts = name.split(/[[.\p{Cc}]/u, MOST_PARTS).map(foldName);
  return [foldName(name), ...parts.map((_part, at) => parts.slice(0, at + 1).join(''))];
}
