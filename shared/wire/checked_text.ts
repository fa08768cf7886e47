import { z } from 'zod';

/** What is wrong with a text, as the rest of a sentence that begins with the field's name; null when nothing is. */
export type TextProblem = (text: string) => string | null;

/** Text of a field. `fix` says what to write when it is missing, no text or too long. */
export function checkedText(maxCharacters: number, fix: string, problem: TextProblem): z.ZodString {
  return z
    .string({ error: ({ input }) => (input === undefined ? `is missing: ${fix}` : `must be text: ${fix}`) })
    .max(maxCharacters, { error: `is longer than ${maxCharacters} characters: ${fix}`, abort: true })
    .superRefine((text, context) => {
      const found = problem(text);
      if (found !== null) context.addIssue({ code: 'custom', message: found });
    });
}
