const LISTED = /: (?:(?:list|look at|search|see)\b[^:;]*? )?GET \/(?:v1|auth)\/.*$/;
const CALLED = / (?:with|by|at) (?:GET|POST|PUT|PATCH|DELETE) (?:\/v1|\.\.\.)\/[^\s,;]+/g;

const OLD_CURSOR = 'the cursor is not one that this list returned';

/** A message of the API without the calls that it names: a person at a page has lists and forms for them. */
export function withoutCalls(message: string): string {
  if (message.includes(OLD_CURSOR)) return 'this part of the list is not there any more: begin at its first page';
  return message.replace(LISTED, '').replaceAll(CALLED, '');
}
