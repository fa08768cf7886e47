import { html } from 'hono/html';
import type { SourcePlan } from '../../../shared/wire/secret_sources.ts';
import { choicesOf, isNeeded } from '../../../shared/wire/sources/field_form.ts';
import type { SourceField } from '../../../shared/wire/sources/source_descriptor.ts';
import { fieldsOf, SOURCE_KINDS, SOURCE_TABLE, type SourceKind } from '../../../shared/wire/sources/source_table.ts';
import { EMPTY_FORM, type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from './owner_field.ts';
import { placeOf, planPanel } from './source.ts';

interface SourceFormView {
  readonly form: FormState;
  readonly kind: SourceKind;
  /** What the source in the form would mint, after a dry run. */
  readonly plan: SourcePlan | null;
  readonly owners: OwnerChoice;
}

const TITLE = 'Add or change a minted secret';

/** The form of a source: its kind, then the fields of that kind. The key is never returned, not even after an error. */
export function sourceFormPage({ form, kind, plan, owners }: SourceFormView): Page {
  const { path, owner } = form.values;
  const above = placeOf(path ?? '');
  const content = html`${pageHeader({ title: TITLE, above, lead: 'A provider issues the value when a request needs it, and it ends after minutes.' })}
    ${kindForm(kind, { path: path ?? '', owner: owner ?? '' })}
    ${formRefusal(form, ['path', 'key', 'description', 'owner', ...Object.keys(fieldsOf(kind))])}
    ${plan === null ? '' : planPanel(plan)}
    <form class="panel stack" method="post" action="/secrets/sources">
      <input type="hidden" name="kind" value="${kind}" />
      ${textField(form, { name: 'path', label: 'Path', hint: html`The name in bindings, such as <code>ci/github</code> for <code>vault://ci/github</code>`, isRequired: true, isMono: true, maxLength: 255 })}
      ${kindFields(form, kind)}
      ${textField(form, { name: 'key', label: 'Key', hint: keyHint(kind, plan !== null), isSecret: true, isMono: true })}
      ${textField(form, { name: 'description', label: 'Description (optional)', maxLength: 500 })}
      ${ownerField(form, owners)}
      <div class="actions">
        <button class="primary" name="do" value="store">Store</button>
        <button name="do" value="plan">Dry run</button>
        <a class="button" href="${above.path}">Cancel</a>
      </div>
      <p class="quiet small">A dry run asks no provider and stores nothing.</p>
    </form>`;
  return layout(TITLE, content, 'narrow');
}

/** Chooses the kind in a form of its own, whose answer has the fields of that kind. */
function kindForm(kind: SourceKind, kept: { readonly path: string; readonly owner: string }): Html {
  const choices = SOURCE_KINDS.map((each) => ({ value: each, title: SOURCE_TABLE[each].title }));
  const form = { ...EMPTY_FORM, values: { kind } };
  return html`<form class="panel" method="get" action="/secrets/sources/new">
    ${Object.entries(kept).map(([name, value]) => (value === '' ? '' : html`<input type="hidden" name="${name}" value="${value}" />`))}
    <div class="one-line">
      ${selectField(form, { name: 'kind', label: 'Who issues the value', choices })}
      <button>Show its fields</button>
    </div>
    <p class="quiet small">${SOURCE_TABLE[kind].lead}</p>
  </form>`;
}

function keyHint(kind: SourceKind, isAgain: boolean): string {
  return `${SOURCE_TABLE[kind].keyHint} No page shows it again${isAgain ? '; type it again to store the source' : ''}. To change a source, give it again.`;
}

function kindFields(form: FormState, kind: SourceKind): Html {
  const fields = Object.entries(fieldsOf(kind));
  const rare = fields.filter(([, field]) => isRare(field));
  const isUsed = (name: string) =>
    (form.values[name] ?? '') !== '' || form.problems.some(({ field }) => field.split('.')[0] === name);
  const [often, seldom] = [fields.filter(([, field]) => !isRare(field)), rare].map((some) =>
    some.map(([name, field]) => kindField(form, name, field)),
  );
  if (rare.length === 0) return html`${often}`;
  return html`${often}
    <details class="more" ${rare.some(([name]) => isUsed(name)) ? 'open' : ''}>
      <summary>${rare.map(([, { label }]) => label).join(', ')}</summary>
      <div class="stack">${seldom}</div>
    </details>`;
}

function isRare(field: SourceField): boolean {
  return field.isRare === true && !isNeeded(field.schema);
}

function kindField(form: FormState, name: string, { schema, label, isLong, ...words }: SourceField): Html {
  const choices = choicesOf(schema)?.map((value) => ({ value, title: value })) ?? null;
  const isRequired = isNeeded(schema);
  const field = {
    name,
    label: isRequired || choices !== null ? label : `${label} (optional)`,
    ...(words.hint !== undefined && { hint: words.hint }),
    ...(words.placeholder !== undefined && { placeholder: words.placeholder }),
    ...(isRequired && { isRequired }),
  };
  if (choices !== null) return selectField(form, { ...field, choices });
  if (isLong === true) return textArea(form, { ...field, rows: 4, isMono: true });
  return textField(form, { ...field, isMono: true });
}
