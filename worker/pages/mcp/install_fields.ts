import { html } from 'hono/html';
import type { MarketplaceInput } from '../../../shared/wire/marketplace.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, selectField, textField } from '../components/form_field.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';
import { showHidden } from '../../../shared/model/shown_text.ts';

/** The name of an input's field is its index, because a publisher may name an input anything. */
export function inputField(index: number): string {
  return `input_${index}`;
}

/** The fields of inputs to fill in; those of secrets are never prefilled. */
export function inputFields(form: FormState, inputs: readonly MarketplaceInput[]): readonly Html[] {
  return inputs.map((input, index) => oneField(form, inputField(index), input));
}

function oneField(form: FormState, name: string, input: MarketplaceInput): Html {
  const optional = input.required && input.default === null ? '' : ' (optional)';
  const field = { name, label: showHidden(input.name) + optional, hint: hintOf(input) };
  if (input.repeated) return textArea(form, { ...field, rows: 3, isMono: true });
  const choices = input.format === 'boolean' && input.choices.length === 0 ? ['true', 'false'] : input.choices;
  if (choices.length > 0) {
    const any = input.default === null ? 'Not given' : `As published: ${showHidden(input.default)}`;
    const options = choices.map((value) => ({ value, title: showHidden(value) }));
    return selectField(form, { ...field, choices: [{ value: '', title: any }, ...options] });
  }
  const isRequired = input.required && input.default === null ? { isRequired: true as const } : {};
  const placeholder = input.default ?? input.placeholder;
  return textField(form, {
    ...field,
    ...isRequired,
    ...(input.secret && { isSecret: true as const }),
    ...(placeholder !== null && !input.secret && { placeholder: showHidden(placeholder) }),
    isMono: true,
  });
}

function hintOf({ description, goes_to: places, repeated }: MarketplaceInput): Html {
  return html`${foreignText(description)} ${description === '' ? '' : html`<br />`}Goes to
  ${foreignText(places.join(', '))}${repeated ? '; one value on each line' : ''}`;
}
