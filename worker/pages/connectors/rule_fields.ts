import { html } from 'hono/html';
import { type FormState, textField } from '../components/form_field.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';

/** The fields of a rule for the JSON body of an operation. */
export const RULE_FIELDS = ['rule_operation', 'rule_pointer', 'rule_equals', 'rule_at_least', 'rule_at_most'] as const;

/** Adds a rule to the text of a spec, and shows which requests each operation would have matched. */
export function ruleEditor(form: FormState, operations: readonly string[]): Html {
  const isUsed = RULE_FIELDS.some((name) => (form.values[name] ?? '') !== '');
  return html`<details class="more" ${isUsed ? 'open' : ''}>
    <summary>Add a rule for a JSON body</summary>
    <div class="stack">
      <p class="quiet small">
        The operation then matches only requests whose body has this value. It is written into the spec above as JSON,
        and nothing is installed.
      </p>
      <datalist id="spec-operations">${operations.map((name) => html`<option value="${name}"></option>`)}</datalist>
      ${textField(form, { name: 'rule_operation', label: 'Operation', placeholder: 'create-payment', isMono: true, list: 'spec-operations' })}
      ${textField(form, { name: 'rule_pointer', label: 'JSON pointer', hint: 'The place in the body (RFC 6901)', placeholder: '/amount', isMono: true })}
      ${textArea(form, { name: 'rule_equals', label: 'Allowed values', hint: html`One per line: a text, a number, <code>true</code> or <code>false</code>. Quotes make a text of a number: <code>"5"</code>. Or leave it empty and give a range.`, rows: 2, isMono: true })}
      <div class="filters">
        ${textField(form, { name: 'rule_at_least', label: 'At least', placeholder: '0', isMono: true })}
        ${textField(form, { name: 'rule_at_most', label: 'At most', placeholder: '100', isMono: true })}
      </div>
      <div class="actions"><button name="step" value="rule">Add the rule and check</button></div>
    </div>
  </details>`;
}
