import { z } from 'zod';

/**
 * What is wrong with a field, as the rest of a sentence that begins with its name, where a schema says nothing itself. The
 * value given is never quoted: it may be a secret.
 */
export function fieldMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is missing' : `must be a ${issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? 'is missing' : `must be one of ${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return 'is not a field here: take it out';
    case 'too_big':
      return `is too large: at most ${String(issue.maximum)}${unit(issue.origin)}`;
    case 'too_small':
      return `is too small: at least ${String(issue.minimum)}${unit(issue.origin)}`;
    case 'invalid_format':
      return issue.format === 'datetime' ? 'must be an RFC 3339 time' : 'has the wrong form';
    case 'custom':
    case 'invalid_element':
    case 'invalid_key':
    case 'invalid_union':
    case 'not_multiple_of':
    default:
      return 'is not valid';
  }
}

function unit(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' items' : '';
}

/** Makes zod say it so. It is zod's one setting for this, the same in every program that calls it. */
export function useFieldMessages(): void {
  z.config({ localeError: fieldMessage });
}
