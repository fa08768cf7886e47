/** Gateways hand the names of headers on with `_` for `-` (RFC 3875 section 4.1.18), and some with it for other characters too. */
const OVERRIDE_HEADER = /^x[^a-z0-9](?:http[^a-z0-9]method(?:[^a-z0-9]override)?|method[^a-z0-9]override)$/i;
/** Some frameworks trim the name, take other characters for the underscore, and end it at a bracket or a NUL. */
const OVERRIDE_PARAMETER = /^\s*[^a-z0-9]method(?![a-z0-9])/i;

/** True for a header by which a server is told that a request has another method than its own. */
export function isMethodOverrideHeader(name: string): boolean {
  return OVERRIDE_HEADER.test(name);
}

/** The methods that the `_method` parameters of a POST's query name, which servers take in place of POST; none for others. */
export function methodOverridesOfQuery(method: string, query: string | null): readonly string[] {
  if (query === null || method.toUpperCase() !== 'POST') return [];
  const pairs = Array.from(new URLSearchParams(query.replaceAll(';', '&')));
  return pairs.flatMap(([name, value]) => (OVERRIDE_PARAMETER.test(name) ? [value] : []));
}
