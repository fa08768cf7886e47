import { z } from 'zod';
import { normaliseHost } from '../net/host.ts';
import { parseHostPattern } from '../net/host_pattern.ts';
import { parseVaultReference } from '../model/vault_path.ts';

export const MAX_ALLOWED_HOSTS = 100;

type Issue = { readonly code?: string | undefined; readonly input?: unknown; readonly keys?: readonly string[] };
/** What is wrong with a text, as the rest of a sentence that begins with the field's name; null when nothing is. */
type TextProblem = (text: string) => string | null;

export const hostPatternText = textField(253, (text) => {
  const pattern = parseHostPattern(text);
  return pattern.ok ? null : pattern.error.message;
});
export const allowedHostText = textField(257, (text) => {
  const host = normaliseHost(text);
  return host.ok ? null : host.error.message;
});
export const credentialRefText = textField(264, (text) => {
  const path = parseVaultReference(text);
  return path.ok ? null : path.error.message;
});
export const usernameText = textField(256, () => null);
export const headerText = textField(128, () => null);
export const templateText = textField(1024, () => null);
export const queryParamText = textField(128, () => null);
export const accessKeyIdText = textField(128, () => null);
export const sigv4ScopeText = textField(64, () => null);
export const sentinelValueText = textField(1024, () => null);
export const sentinelEnvText = textField(128, () => null);
export const descriptionText = textField(500, () => null);

function textField(maxCharacters: number, problem: TextProblem): z.ZodString {
  return z
    .string({ error: (issue) => (issue.input === undefined ? 'is missing' : 'must be text') })
    .max(maxCharacters, { error: `is longer than ${maxCharacters} characters`, abort: true })
    .superRefine((text, context) => {
      const found = problem(text);
      if (found !== null) context.addIssue({ code: 'custom', message: found });
    });
}

/** One of a closed set. */
export function choice<const T extends readonly string[]>(values: T) {
  return z.enum(values, { error: (issue) => (issue.input === undefined ? 'is missing' : 'is unknown') });
}

export function bindingObjectError(_issue: Issue): string | undefined {
  return undefined;
}
export function sentinelObjectError(_issue: Issue): string | undefined {
  return undefined;
}
export function listError(_issue: Issue): string {
  return 'must be a list of hosts';
}
