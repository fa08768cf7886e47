import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';
import { type FieldInput, type FormState, labelledControl } from './form_field.ts';

/** A text field of several lines. */
export function textArea(form: FormState, field: FieldInput & { readonly rows: number }): Html {
  const { name, rows, isMono, isRequired, placeholder } = field;
  const value = form.values[name] ?? '';
  return labelledControl(form, field, (attributes) => {
    return html`<textarea
      ${attributes}
      rows="${String(rows)}"
      class="${isMono === true ? 'mono' : ''}"
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
      ${placeholder === undefined ? '' : html`placeholder="${placeholder}"`}
      ${isRequired === true ? 'required' : ''}
    >
${value}</textarea>`;
  });
}
