/** A parameter of a challenge (RFC 9110 section 11.2): a token, `=`, and a token or a quoted string. */
const PARAMETER = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)/;
const SCHEME = /^\s*,?\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s+|$)/;

const MOST_CHARACTERS = 8_192;

/**
 * The parameters of the first Bearer challenge of a `WWW-Authenticate` header, by lower-case name; empty if there is
 * none.
 */
export function bearerChallenge(header: string): Readonly<Record<string, string>> {
  let rest = header.slice(0, MOST_CHARACTERS);
  while (rest.trim() !== '') {
    const scheme = SCHEME.exec(rest);
    if (scheme === null) return {};
    const [parameters, after] = parametersOf(rest.slice(scheme[0].length));
    if (scheme[1]?.toLowerCase() === 'bearer') return parameters;
    if (after.length >= rest.length) return {};
    rest = after;
  }
  return {};
}

/** Parses the parameters at the start of a text, and returns them with the rest. */
function parametersOf(text: string): readonly [Record<string, string>, string] {
  const parameters: Record<string, string> = {};
  let rest = text;
  for (let found = PARAMETER.exec(rest); found !== null; found = PARAMETER.exec(rest)) {
    const [whole, name = '', quoted, token] = found;
    parameters[name.toLowerCase()] = quoted?.replaceAll(/\\(.)/g, '$1') ?? token ?? '';
    rest = rest.slice(whole.length);
  }
  return [parameters, rest];
}
