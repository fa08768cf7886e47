import { err, ok, type Result } from '../model/result.ts';

/** No program needs deeper values, and each level costs memory. */
const MOST_LEVELS = 100;
const MARKS: ReadonlySet<string> = new Set(['{', '}', '[', ']', ',', ':']);

/**
 * Reads a JSON text that every parser reads the same way: no object has a key twice, in any spelling, because some parsers
 * use the first and some the last. The error is a predicate.
 */
export function parseUniqueJson(text: string): Result<unknown, string> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return err('is no JSON');
  }
  const fault = keyFault(text);
  return fault === null ? ok(value) : err(fault);
}

/** The same for the bytes of a body in UTF-8. A byte order mark is no JSON. */
export function parseUniqueJsonBytes(body: readonly Uint8Array[]): Result<unknown, string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    return parseUniqueJson(body.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode());
  } catch {
    return err('is not UTF-8');
  }
}

/** Scans the strings and brackets of a valid JSON text once: in an object, a string after a bracket or a comma is a key. */
function keyFault(text: string): string | null {
  const open: (Set<unknown> | null)[] = [];
  let mark = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (character === '"') {
      const end = endOfString(text, at);
      const keys = mark === ':' ? null : open.at(-1);
      const raw = keys ? text.slice(at + 1, end - 1) : '';
      const key: unknown = raw.includes('\\') ? JSON.parse(`"${raw}"`) : raw;
      if (keys?.has(key)) return 'has a key twice in one object';
      keys?.add(key);
      at = end - 1;
    } else if (MARKS.has(character)) {
      mark = character;
      if (character === '{') open.push(new Set());
      else if (character === '[') open.push(null);
      else if (character === '}' || character === ']') open.pop();
      if (open.length > MOST_LEVELS) return `is nested more than ${MOST_LEVELS} levels deep`;
    }
  }
  return null;
}

/** Behind the quote that ends the string. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
