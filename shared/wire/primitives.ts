import { z } from 'zod';
import { OWNERS } from '../model/host_binding.ts';
import { idPattern, type IdPrefix } from './ids.ts';

/** RFC 3339 in UTC with milliseconds, as every time on the wire is written. */
export const time = z.iso.datetime({ precision: 3 });

export const owner = z.enum(OWNERS);

/** The largest page a list answers with. */
export const MAX_PAGE = 500;
export const DEFAULT_PAGE = 100;

/** `limit` and `cursor` of a paged list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE),
  /** What the page before said as `next_cursor`. */
  cursor: z.string().max(512).optional(),
};

/** An id with its prefix. */
export function id(prefix: IdPrefix): z.ZodString {
  return z.string().regex(idPattern(prefix), `is not an id of the form ${prefix}_… (26 characters)`);
}

/** A page of a list; `next_cursor` is null on the last one. */
export function page<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() });
}
export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}
