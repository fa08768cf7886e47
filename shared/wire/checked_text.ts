import { z } from 'zod';

/** What is wrong with a text, as a predicate for the field's name; null if nothing is. */
export type TextCheck = (text: string) => string | null;

/** The text of a field. `fix` says what to write if it is missing, not a text or too long. */
export function checkedText(maxCharacters: number, fix: string, problem: TextCheck): z.ZodString {
  return z
    .string({ error: ({ input }) => (input === undefined ? `is missing: ${fix}` : `must be text: ${fix}`) })
    .max(maxCharacters, { error: `is longer than ${maxCharacters} characters: ${fix}`, abort: true })
    .superRefine((text, context) => {
      const found = problem(text);
      if (found !== null) context.addIssue({ code: 'custom', message: found });
    });
}
