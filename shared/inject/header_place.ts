import { headerField } from '../net/http1_head.ts';
import type { HeaderField } from '../net/http1_head.ts';
import type { Presented } from './scheme_adapter.ts';

/**
 * Whether a field is in the place of a header, by their lower-case names: the header itself, or a name that a server takes for
 * it. CGI and what came of it (WSGI, PHP, Rack) make a variable of a name, in which `-`, `_` and all other punctuation are one.
 */
export function isInPlace(name: string, place: string): boolean {
  if (name === place) return true;
  return name.length === place.length && foldName(name) === foldName(place);
}

function foldName(name: string): string {
  return name.replaceAll(/[^a-z0-9]/g, '_');
}

/** What is in a header, given which of its values are the sentinel: only a request whose every copy is, presents it. */
export function findPresentedInHeader(
  fields: readonly HeaderField[],
  lowerName: string,
  isSentinel: (value: string) => boolean,
): Presented {
  let found: Presented = 'absent';
  for (const field of fields) {
    if (!isInPlace(field.name, lowerName)) continue;
    if (!isSentinel(field.value)) return 'foreign';
    found = 'sentinel';
  }
  return found;
}

/**
 * `fields` with `value` as the only copy of a header: appended, so that no copy of the client's, however it is spelled, is left
 * to be read first or last by an upstream.
 */
export function replaceHeader(fields: readonly HeaderField[], name: string, value: string): HeaderField[] {
  const lowerName = name.toLowerCase();
  const rest = fields.filter((field) => !isInPlace(field.name, lowerName));
  rest.push(headerField(name, value));
  return rest;
}

/**
 * `fields` with `value` where the client's first copy of the header is, in the client's spelling of its name; further
 * copies are removed.
 */
export function swapHeader(fields: readonly HeaderField[], name: string, value: string): HeaderField[] {
  const lowerName = name.toLowerCase();
  const first = fields.find((field) => field.name === lowerName);
  if (first === undefined) return replaceHeader(fields, name, value);
  const swapped = headerField(first.line.slice(0, lowerName.length), value);
  return fields.flatMap((field) => {
    if (field === first) return [swapped];
    return isInPlace(field.name, lowerName) ? [] : [field];
  });
}
