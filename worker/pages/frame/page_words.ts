const LISTED = /: (?:(?:list|look at|search|see)\b[^:;]*? )?GET \/(?:v1|auth)\/.*$/;
const CALLED = / (?:with|by|at) (?:GET|POST|PUT|PATCH|DELETE) (?:\/v1|\.\.\.)\/[^\s,;]+/g;

/** A message of the API without the calls that it names: a person at a page has lists and forms for them. */
export function withoutCalls(message: string): string {
  return message.replace(LISTED, '').replaceAll(CALLED, '');
}
