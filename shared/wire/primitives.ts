import { z } from 'zod';
import { OWNERS } from '../model/host_binding.ts';
import { idPattern, type IdPrefix } from './ids.ts';
import { findSteering } from '../model/shown_text.ts';

/** RFC 3339 in UTC with milliseconds, the form of every time on the wire. */
export const time = z.iso.datetime({ precision: 3 });

export const owner = z.enum(OWNERS);

/** SHA-256, hex, over a connector spec's canonical JSON. */
export const contentHash = z.string().regex(/^[0-9a-f]{64}$/);

/** The largest page of a list. */
export const MAX_PAGE = 500;
const DEFAULT_PAGE = 100;

/** `limit` and `cursor` of a paged list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE),
  /** The `next_cursor` of the page before. */
  cursor: z.string().max(512).optional(),
};

/** What is wrong with a line for people; null if nothing is. Direction marks could make it look like another one. */
export function lineProblem(text: string): string | null {
  const found = findSteering(text, false);
  if (found !== null && /^U\+D[89A-F]/.test(found)) return 'is not well-formed Unicode: write one line of plain text';
  return found === null
    ? null
    : `contains a line break or another control character (${found}): write one line of plain text`;
}

/** One line for people, such as a name or a description. */
export function line(maxCharacters: number): z.ZodString {
  return z
    .string()
    .max(maxCharacters)
    .superRefine((text, context) => {
      const problem = lineProblem(text);
      if (problem !== null) context.addIssue({ code: 'custom', message: problem });
    });
}

/** An id with its prefix. */
export function id(prefix: IdPrefix): z.ZodString {
  return z.string().regex(idPattern(prefix), `is not an id of the form ${prefix}_… (26 characters)`);
}

/** A container image by its content id, as engines print it. */
export const imageId = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'is not an image id of the form sha256:...');

/** A page of a list; `next_cursor` is null on the last one. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() });
}
export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}
