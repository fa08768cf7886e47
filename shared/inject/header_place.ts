import { headerField } from '../net/http1_head.ts';
import type { HeaderField } from '../net/http1_head.ts';
import type { Presented } from './scheme_adapter.ts';

/** What is in a header, given which of its values are the sentinel: only a request whose every copy is, presents it. */
export function presentedInHeader(
  fields: readonly HeaderField[],
  lowerName: string,
  isSentinel: (value: string) => boolean,
): Presented {
  let found: Presented = 'absent';
  for (const field of fields) {
    if (field.name !== lowerName) continue;
    if (!isSentinel(field.value)) return 'foreign';
    found = 'sentinel';
  }
  return found;
}

/**
 * `fields` with `value` as the only copy of a header: appended, so that no copy of the client's is left to be read first
 * or last by an upstream.
 */
export function replaceHeader(fields: readonly HeaderField[], name: string, value: string): HeaderField[] {
  const lowerName = name.toLowerCase();
  const rest = fields.filter((field) => field.name !== lowerName);
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
    return field.name === lowerName ? [] : [field];
  });
}
