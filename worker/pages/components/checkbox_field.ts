import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';
import { type FormState, problemOf } from './form_field.ts';

/** The form value of a ticked box; an unticked one sends nothing. */
export const TICKED = 'on';

/** A checkbox. */
export function checkboxField(
  form: FormState,
  field: { readonly name: string; readonly label: Content; readonly hint?: Content },
): Html {
  const { name, label, hint } = field;
  const isWrong = form.problems.some((problem) => problem.field === name);
  const described = [hint === undefined ? '' : `${name}-hint`, isWrong ? `${name}-problem` : ''].filter(
    (id) => id !== '',
  );
  return html`<div class="field">
    <label class="check"
      ><input
        type="checkbox"
        name="${name}"
        value="${TICKED}"
        ${form.values[name] === TICKED ? 'checked' : ''}
        ${described.length === 0 ? '' : html`aria-describedby="${described.join(' ')}"`}
        ${isWrong ? html`aria-invalid="true"` : ''}
        ${form.problems[0]?.field === name ? 'autofocus' : ''}
      />
      ${label}</label
    >
    ${hint === undefined ? '' : html`<p class="hint" id="${name}-hint">${hint}</p>`} ${problemOf(form, name)}
  </div>`;
}
