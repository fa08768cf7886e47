/**
 * JSON of others, looked at without building it: `JSON.parse` takes half a second for a MiB of brackets or of short members, and
 * everything else waits meanwhile. A scan is one pass with a fixed amount of work for each character.
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

/** What makes a text too costly to parse, as the rest of a sentence; null for one that may be parsed. */
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
    if (values > MAX_VALUES) return `holds more than ${MAX_VALUES} values`;
  }
  return null;
}

/**
 * The names of an object's own members, as they stand between their quotes; none for a text that is no object from its first
 * brace to its last. What is in the members is not checked.
 */
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

/** Where the string that begins here ends: at its closing quote, or with the text. */
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
