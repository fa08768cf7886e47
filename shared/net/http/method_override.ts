/** Gateways map `-` to `_` in header names (RFC 3875 section 4.1.18), and some map other characters too. */
const OVERRIDE_HEADER = /^x[^a-z0-9](?:http[^a-z0-9]method(?:[^a-z0-9]override)?|method[^a-z0-9]override)$/i;
/** Some frameworks trim the name, treat other characters as the underscore, and end it at a bracket or a NUL. */
const OVERRIDE_PARAMETER = /^\s*[^a-z0-9]method(?![a-z0-9])/i;

/** True for a header that tells a server to use another method than the request's own. */
export function isMethodOverrideHeader(name: string): boolean {
  return OVERRIDE_HEADER.test(name);
}

/** The methods that the `_method` parameters of a POST's query name, which some servers use in place of POST; none for other methods. */
export function methodOverridesOfQuery(method: string, query: string | null): readonly string[] {
  if (query === null || method.toUpperCase() !== 'POST') return [];
  const pairs = Array.from(new URLSearchParams(query.replaceAll(';', '&')));
  return pairs.flatMap(([name, value]) => (OVERRIDE_PARAMETER.test(name) ? [value] : []));
}

/** `_method`, each character plain, percent-encoded or escaped as in JSON; PHP reads `.` and `[` as `_`. */
const NAME = [
  ['_.[', '5f|2e|5b'],
  ['m', '[46]d'],
  ['e', '[46]5'],
  ['t', '[57]4'],
  ['h', '[46]8'],
  ['o', '[46]f'],
  ['d', '[46]4'],
]
  .map(([characters = '', codes = '']) => String.raw`(?:[${characters}]|(?:%|\\u00)(?:${codes}))`)
  .join('');
const BLANKS = String.raw`(?:\s|\+|%20|%09){0,8}`;
const NAME_IN_BODY = new RegExp(
  [
    `(?:^|[&;])${BLANKS}${NAME}(?![a-z0-9])`,
    `name=["']?${BLANKS}${NAME}(?![a-z0-9])`,
    String.raw`(?<!\\)"${NAME}"\s{0,8}:`,
  ].join('|'),
  'i',
);

/**
 * Whether the body of a request could name another method: a POST with `_method` in a form (urlencoded or multipart) or in
 * JSON, for any Content-Type, because servers differ in what they read. `body` is latin1.
 */
export function mayNameMethod(method: string, body: string): boolean {
  return method.toUpperCase() === 'POST' && NAME_IN_BODY.test(body);
}
