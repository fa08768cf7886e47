import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';
import { alert } from './alert.ts';
import type { FieldProblem } from '../../../shared/model/problem.ts';
import { capitalise } from '../../../shared/model/sentence.ts';

/** A form's input and problems. `values` never contains a secret, so that it is not echoed, not even after an error. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>;
  readonly problems: readonly FieldProblem[];
  /** A problem with the form as a whole. */
  readonly refusal: string | null;
}

export const EMPTY_FORM: FormState = { values: {}, problems: [], refusal: null };

export interface FieldInput {
  readonly name: string;
  readonly label: string;
  readonly hint?: Content;
  readonly isRequired?: true;
  readonly isMono?: true;
  readonly isSecret?: true;
  readonly placeholder?: string;
  readonly maxLength?: number;
  /** The id of a datalist. */
  readonly list?: string;
}

/** The revision of what a form changes: it is refused if somebody changes that first. */
export function revisionField(revision = ''): Html {
  return html`<input type="hidden" name="revision" value="${revision}" />`;
}

/** A text field of one line. */
export function textField(form: FormState, field: FieldInput): Html {
  const { name, isSecret } = field;
  const value = isSecret === true ? '' : (form.values[name] ?? '');
  return labelledControl(form, field, (attributes) => {
    return html`<input
      ${attributes}
      type="${isSecret === true ? 'password' : 'text'}"
      class="${field.isMono === true ? 'mono' : ''}"
      value="${value}"
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
      ${field.placeholder === undefined ? '' : html`placeholder="${field.placeholder}"`}
      ${field.maxLength === undefined ? '' : html`maxlength="${String(field.maxLength)}"`}
      ${field.list === undefined ? '' : html`list="${field.list}"`}
      ${field.isRequired === true ? 'required' : ''}
    />`;
  });
}

/** A point in time in UTC. Any other time that was given, such as one with an offset, is shown in UTC too. */
export function timeField(form: FormState, field: Pick<FieldInput, 'name' | 'label'>): Html {
  const given = Date.parse(utcTime(form.values[field.name] ?? ''));
  const value = Number.isNaN(given) ? '' : new Date(given).toISOString().slice(0, 19);
  return labelledControl(form, field, (attributes) => {
    return html`<input ${attributes} type="datetime-local" step="1" value="${value}" />`;
  });
}

/** A day. */
export function dateField(form: FormState, field: Pick<FieldInput, 'name' | 'label' | 'isRequired'>): Html {
  const given = form.values[field.name] ?? '';
  const value = /^\d{4}-\d\d-\d\d$/.test(given) ? given : '';
  return labelledControl(form, field, (attributes) => {
    return html`<input ${attributes} type="date" value="${value}" ${field.isRequired === true ? 'required' : ''} />`;
  });
}

/** What {@link timeField} sends, as RFC 3339. */
export function utcTime(text: string): string {
  const [, minutes, seconds] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d(?:\.\d+)?)?$/.exec(text) ?? [];
  return minutes === undefined ? text : `${minutes}${seconds ?? ':00'}Z`;
}

export interface Choice {
  readonly value: string;
  readonly title: string;
}

/** A select field; the default is the first choice. */
export function selectField(form: FormState, field: FieldInput & { readonly choices: readonly Choice[] }): Html {
  const chosen = form.values[field.name] ?? '';
  return labelledControl(form, field, (attributes) => {
    return html`<select ${attributes}>
      ${field.choices.map(
        ({ value, title }) => html`<option value="${value}" ${value === chosen ? 'selected' : ''}>${title}</option>`,
      )}
    </select>`;
  });
}

/** Radio buttons. */
export function radioField(form: FormState, field: FieldInput & { readonly choices: readonly Choice[] }): Html {
  const { name, label, choices } = field;
  const chosen = form.values[name] ?? choices[0]?.value;
  return html`<fieldset class="field">
    <legend>${label}</legend>
    <div class="choices">
      ${choices.map(
        ({ value, title }) =>
          html`<label
            ><input type="radio" name="${name}" value="${value}" ${value === chosen ? 'checked' : ''} /> ${title}</label
          >`,
      )}
    </div>
    ${field.hint === undefined ? '' : html`<p class="hint">${field.hint}</p>`} ${problemOf(form, name)}
  </fieldset>`;
}

/** Problems with the form as a whole, or with fields that it does not have. */
export function formRefusal(form: FormState, shown: readonly string[]): Html | string {
  const others = form.problems.filter(({ field }) => !shown.includes(fieldOf(field)));
  if (form.refusal === null && others.length === 0) return '';
  return alert(
    'bad',
    html`<p><strong>${form.refusal ?? 'Nothing was stored.'}</strong></p>
      ${others.map(({ field, message }) => html`<p>${field} ${message}</p>`)}`,
  );
}

/** A control under its label, with its hint and what is wrong with it. */
export function labelledControl(form: FormState, field: FieldInput, control: (attributes: Html) => Html): Html {
  const { name, label, hint } = field;
  const isWrong = form.problems.some((problem) => fieldOf(problem.field) === name);
  const isFirstWrong = fieldOf(form.problems[0]?.field ?? '') === name && isWrong;
  const described = [hint === undefined ? '' : `${name}-hint`, isWrong ? `${name}-problem` : ''].filter(
    (id) => id !== '',
  );
  const attributes = html`id="${name}" name="${name}"
  ${described.length === 0 ? '' : html`aria-describedby="${described.join(' ')}"`}
  ${isWrong ? html`aria-invalid="true"` : ''} ${isFirstWrong ? 'autofocus' : ''}`;
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${control(attributes)} ${hint === undefined ? '' : html`<p class="hint" id="${name}-hint">${hint}</p>`}
    ${problemOf(form, name)}
  </div>`;
}

/** A field's problems, for `aria-describedby`. */
export function problemOf(form: FormState, name: string): Html | string {
  const problems = form.problems.filter(({ field }) => fieldOf(field) === name);
  if (problems.length === 0) return '';
  return html`<p class="problem" id="${name}-problem">
    ${problems.map(({ message }) => problemSentence(message)).join('. ')}.
  </p>`;
}

/** Most messages are the rest of a sentence that begins with the field; some are sentences of their own. */
function problemSentence(message: string): string {
  return /^(?:an?|no|the|there|this)\b/.test(message) ? capitalise(message) : `It ${message}`;
}

/** `allowed_hosts.2` belongs to the field `allowed_hosts`. */
function fieldOf(path: string): string {
  return path.split('.')[0] ?? path;
}
