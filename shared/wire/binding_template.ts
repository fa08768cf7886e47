import { z } from 'zod';
import { err, ok, type Result } from '../model/result.ts';
import { fieldProblems } from './errors.ts';
import { HOST_BINDING_FIELDS } from './host_binding.ts';
import { describeUnknownFields } from './host_binding_rules.ts';
import { fillPlaceholders, placeholderNames } from './placeholder.ts';

const line = z.string().min(1).max(500);

/** A template fills every field except the owner; the user of the template supplies the credential. */
const TEMPLATE_FIELDS = HOST_BINDING_FIELDS.filter((field) => field !== 'owner');

const bindingTemplate = z.strictObject({
  /** The name for `--from`, and the file's name. */
  name: z.string().regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by "-"'),
  title: line,
  /** How the service's documentation says the credential is sent, with `{token}` for the credential. */
  wire_form: line,
  /** Where that is documented. */
  source: z.strictObject({ title: line, url: z.url({ protocol: /^https$/ }) }),
  notes: z.array(line).default([]),
  /** Fields of a host binding; a text may contain `<placeholder>`s that have to be filled. */
  binding: z.record(z.string(), z.unknown()).superRefine((binding, context) => {
    const unknown = Object.keys(binding).filter((field) => !TEMPLATE_FIELDS.includes(field));
    if (unknown.length > 0)
      context.addIssue({ code: 'custom', message: describeUnknownFields(unknown, TEMPLATE_FIELDS) });
    const missing = ['host', 'scheme', 'credential_ref'].filter((field) => binding[field] === undefined);
    if (missing.length > 0) context.addIssue({ code: 'custom', message: `has no ${missing.join(', ')}` });
    if (placeholdersIn(binding['credential_ref']).length > 0) return;
    context.addIssue({
      code: 'custom',
      path: ['credential_ref'],
      message: 'must leave the secret open: vault://<secret>',
    });
  }),
});

/** A ready binding for a well-known service: a file of `catalog/bindings/`. */
export type BindingTemplate = z.output<typeof bindingTemplate>;

interface TemplateProblem {
  readonly reason: 'invalid_template' | 'unfilled_placeholder';
  readonly message: string;
  /** The placeholders that are still open, for `unfilled_placeholder`. */
  readonly placeholders: readonly TemplatePlaceholder[];
}

/** A placeholder that the user has to fill, and the fields that contain it. */
export interface TemplatePlaceholder {
  readonly name: string;
  readonly fields: readonly string[];
}

/** Checks a template file's content, as returned by the YAML parser. */
export function parseBindingTemplate(value: unknown): Result<BindingTemplate, TemplateProblem> {
  const parsed = bindingTemplate.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const problems = fieldProblems(parsed.error).map(({ field, message }) => `${field || 'template'}: ${message}`);
  return err({ reason: 'invalid_template', message: problems.join('; '), placeholders: [] });
}

/**
 * The template's binding with `values` (fields of a host binding) applied. A field's text also fills the placeholder of its
 * name elsewhere: `region` fills `<region>` in the host. Refuses while a placeholder is open. The result must still be
 * validated as a binding.
 */
export function fillTemplate(
  template: BindingTemplate,
  values: Readonly<Record<string, unknown>>,
): Result<Readonly<Record<string, unknown>>, TemplateProblem> {
  const merged = { ...template.binding, ...values };
  const filled = Object.fromEntries(
    Object.entries(merged).map(([field, value]) => [field, fillValue(value, (name) => valueFor(name, field, values))]),
  );
  const open = openPlaceholders(filled);
  if (open.length === 0) return ok(filled);
  const list = open.map(({ name, fields }) => `<${name}> (in ${fields.join(', ')})`).join(', ');
  const message = `template "${template.name}" needs ${list}: give ${open.length === 1 ? 'it' : 'each'} as a field of the binding`;
  return err({ reason: 'unfilled_placeholder', message, placeholders: open });
}

/** The placeholders of a template that a person has to fill. */
export function placeholdersOf(template: BindingTemplate): readonly TemplatePlaceholder[] {
  return openPlaceholders(template.binding);
}

function openPlaceholders(binding: Readonly<Record<string, unknown>>): TemplatePlaceholder[] {
  const fieldsByName = new Map<string, string[]>();
  for (const [field, value] of Object.entries(binding)) {
    for (const name of placeholdersIn(value)) fieldsByName.set(name, [...(fieldsByName.get(name) ?? []), field]);
  }
  return Array.from(fieldsByName, ([name, fields]) => ({ name, fields }));
}

function placeholdersIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return placeholderNames(value);
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(placeholdersIn))];
}

/** A field never fills a placeholder with text that contains the same placeholder. */
function valueFor(name: string, field: string, values: Readonly<Record<string, unknown>>): string | null {
  const source = name.replaceAll('-', '_');
  const value = source === field ? undefined : values[source];
  return typeof value === 'string' ? value : null;
}

function fillValue(value: unknown, valueOf: (name: string) => string | null): unknown {
  if (typeof value === 'string') return fillPlaceholders(value, valueOf);
  if (Array.isArray(value)) return value.map((item: unknown) => fillValue(item, valueOf));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillValue(item, valueOf)]));
}
