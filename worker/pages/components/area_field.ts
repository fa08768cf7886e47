import { html } from 'hono/html';
import type { Content, Html } from '../html.ts';
import type { FormState } from './form_field.ts';

/** A field of several lines, each a value of its own. */
export function areaField(
  form: FormState,
  field: { readonly name: string; readonly label: string; readonly hint: Content },
): Html {
  const { name, label, hint } = field;
  const problems = form.problems.filter((problem) => problem.field === name);
  const isWrong = problems.length > 0;
  const isFirst = isWrong && form.problems[0]?.field === name;
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <textarea
      id="${name}"
      name="${name}"
      class="mono"
      rows="3"
      spellcheck="false"
      autocapitalize="off"
      aria-describedby="${name}-hint${isWrong ? ` ${name}-problem` : ''}"
      ${isWrong ? html`aria-invalid="true"` : ''}
      ${isFirst ? 'autofocus' : ''}
    >
${form.values[name] ?? ''}</textarea>
    <p class="hint" id="${name}-hint">${hint}</p>
    ${isWrong ? html`<p class="problem" id="${name}-problem">${problems.map(({ message }) => `It ${message}`).join('. ')}.</p>` : ''}
  </div>`;
}
