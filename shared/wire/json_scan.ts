/**
 * Inspects untrusted JSON without parsing it: `JSON.parse` takes half a second for a MiB of brackets or of short members,
 * and blocks everything else. A scan is one pass with a fixed amount of work per character.
 */

/** Deeper nesting, or more values, than an honest caller sends. */
const MAX_DEPTH = 128;
const MAX_VALUES = 100_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Why a text is too costly to parse, as a predicate; null if it may be parsed. */
export function jsonCostProblem(text: string): string | null {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth += 1;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    else if (code !== COMMA) continue;
    if (depth > MAX_DEPTH) return `is nested more than ${MAX_DEPTH} deep`;
    if (code === COMMA || code === OPEN_LIST || code === OPEN_OBJECT) values += 1;
    if (values > MAX_VALUES) return `has more than ${MAX_VALUES} values`;
  }
  return null;
}

/** The names of an object's own members, as written between their quotes; none if the text is not one object. The members' values are not checked. */
export function memberNames(text: string): readonly string[] {
  const names: string[] = [];
  let depth = 0;
  let isName = false;
  for (let at = text.search(/\S/); at >= 0 && at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (depth === 0 && (code !== OPEN_OBJECT || names.length > 0)) return isBlank(text, at) ? names : [];
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (isName) names.push(text.slice(at + 1, end));
      isName = false;
      at = end;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      isName = depth === 1;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth -= 1;
      isName = false;
    } else if (code === COMMA) isName = depth === 1;
  }
  return depth === 0 ? names : [];
}

/** The end of the string that begins here: its closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

function isBlank(text: string, start: number): boolean {
  for (let at = start; at < text.length; at += 1) if (!/\s/.test(text.charAt(at))) return false;
  return true;
}
