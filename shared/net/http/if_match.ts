import { z } from 'zod';

/**
 * The header `If-Match` (RFC 9110 section 13.1.1) of a call that replaces a thing: the revision that the caller has
 * read, as a strong entity tag. `*` holds for every revision. Older versions ignore the header, where they would
 * refuse a body with a field that they do not know.
 */
export function ifMatchHeaders<T>(revision: z.ZodType<T, string>, example: string) {
  const tag = z
    .string()
    .transform((text, context) => {
      if (text === '*') return undefined;
      const read = revision.safeParse(/^"([^"]*)"$/.exec(text)?.[1]);
      if (read.success) return read.data;
      context.addIssue({ code: 'custom', message: `is not one revision in double quotes: write it as "${example}"` });
      return z.NEVER;
    })
    .optional();
  return z.object({ 'If-Match': tag });
}

/** The revision of a thing, made of its content: it differs after each change. A control plane of an earlier version sends none. */
export const revision = z.string().max(64).optional();

const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** The headers of a call that replaces a thing with such a revision. */
export const revisionHeaders = ifMatchHeaders(hash, '9f86d081…, the revision that you read');
