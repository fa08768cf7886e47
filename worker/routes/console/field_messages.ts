import { z } from 'zod';

/**
 * The default message for an invalid field, as the rest of a sentence that starts with the field's name. It never
 * quotes the value, which may be a secret.
 */
function fieldMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is missing' : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? 'is missing' : `must be one of ${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return 'is not a field here: remove it';
    case 'too_big':
      return `is too large: at most ${String(issue.maximum)}${unitOf(issue.origin)}`;
    case 'too_small':
      if (issue.minimum === 1 && issue.origin !== 'number') return 'is empty';
      return `is too small: at least ${String(issue.minimum)}${unitOf(issue.origin)}`;
    case 'invalid_format':
      return issue.format === 'datetime' ? 'must be a day and a time' : 'has the wrong format';
    case 'invalid_union':
      return 'matches none of the allowed forms: /docs lists them';
    case 'custom':
    case 'invalid_element':
    case 'invalid_key':
    case 'not_multiple_of':
    default:
      return 'is not valid';
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' items' : '';
}

/** Sets these as zod's messages. Zod has one such setting per program. */
export function useFieldMessages(): void {
  z.config({ localeError: fieldMessage });
}
