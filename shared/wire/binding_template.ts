import type { Result } from '../model/result.ts';
import { err } from '../model/result.ts';

/** A ready binding for a well-known service: a file of `catalog/bindings/`. */
export interface BindingTemplate {
  readonly name: string;
  readonly title: string;
  /** How the service's documentation says the credential is sent. */
  readonly wire_form: string;
  readonly source: { readonly title: string; readonly url: string };
  readonly notes: readonly string[];
  /** Fields of a host binding; a value may hold `<placeholder>`s that must be filled. */
  readonly binding: Readonly<Record<string, unknown>>;
}

export interface TemplateError {
  readonly reason: 'invalid_template' | 'unfilled_placeholder';
  readonly message: string;
}

/** Checks a template file's content, as the YAML parser read it. */
export function parseBindingTemplate(_value: unknown): Result<BindingTemplate, TemplateError> {
  return err({ reason: 'invalid_template', message: 'not a template' });
}

/**
 * The template's binding with `values` (fields of a host binding) put over it. The value of a field also fills the
 * placeholder of its name elsewhere (`region` fills `<region>` in the host). Validate the result as a binding.
 */
export function fillTemplate(
  _template: BindingTemplate,
  _values: Readonly<Record<string, unknown>>,
): Result<Readonly<Record<string, unknown>>, TemplateError> {
  return err({ reason: 'unfilled_placeholder', message: '' });
}

/** The placeholders of a template that a person has to fill, each with the fields it stands in. */
export function placeholdersOf(_template: BindingTemplate): readonly { name: string; fields: readonly string[] }[] {
  return [];
}
