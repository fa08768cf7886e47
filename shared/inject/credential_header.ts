import { headerField } from '../net/http/http1_head.ts';
import type { HeaderField } from '../net/http/http1_head.ts';
import type { Presented } from './scheme_adapter.ts';

/**
 * Whether a field name is the given header (both lower-case): the same name, or one that a server treats as the
 * same. CGI and its successors (WSGI, PHP, Rack) turn a name into a variable, in which `-`, `_` and all other punctuation
 * are equal.
 */
export function isSameHeader(name: string, header: string): boolean {
  if (name === header) return true;
  return name.length === header.length && foldName(name) === foldName(header);
}

function foldName(name: string): string {
  return name.replaceAll(/[^a-z0-9]/g, '_');
}

/** What the client put in a header. It presents the sentinel only if every copy of the header is the sentinel. */
export function findPresentedInHeader(
  fields: readonly HeaderField[],
  lowerName: string,
  isSentinel: (value: string) => boolean,
): Presented {
  let found: Presented = 'absent';
  for (const field of fields) {
    if (!isSameHeader(field.name, lowerName)) continue;
    if (!isSentinel(field.value)) return 'foreign';
    found = 'sentinel';
  }
  return found;
}

/**
 * `fields` with `value` as the only copy of a header. It is appended after every copy of the client's was removed, in any
 * spelling, so that no upstream reads another one.
 */
export function replaceHeader(fields: readonly HeaderField[], name: string, value: string): HeaderField[] {
  const lowerName = name.toLowerCase();
  const rest = fields.filter((field) => !isSameHeader(field.name, lowerName));
  rest.push(headerField(name, value));
  return rest;
}

/** `fields` with `value` in place of the client's first copy of the header, under the client's spelling of the name; further copies are removed. */
export function swapHeader(fields: readonly HeaderField[], name: string, value: string): HeaderField[] {
  const lowerName = name.toLowerCase();
  const first = fields.find((field) => field.name === lowerName);
  if (first === undefined) return replaceHeader(fields, name, value);
  const swapped = headerField(first.line.slice(0, lowerName.length), value);
  return fields.flatMap((field) => {
    if (field === first) return [swapped];
    return isSameHeader(field.name, lowerName) ? [] : [field];
  });
}
