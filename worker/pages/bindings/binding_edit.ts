import { html } from 'hono/html';
import type { InjectionScheme } from '../../../shared/model/host_binding.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { BindingDetails } from '../../services/bindings/binding_details.ts';
import { personWords } from './binding.ts';
import { bindingControls, bindingFieldLabel, bindingFormFields, schemeTabs } from './binding_form.ts';
import { alert } from '../components/alert.ts';
import { dataTable } from '../components/data_table.ts';
import { type FormState, formRefusal } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

export interface BindingEditView {
  readonly details: BindingDetails;
  readonly form: FormState;
  readonly scheme: InjectionScheme;
  readonly references: readonly string[];
  /** The state that saving takes the place of: `updated_at` of the binding as whoever edits saw it. */
  readonly revision: string;
  /** What is stored and what was typed, where somebody else was quicker. */
  readonly conflict: BindingConflict | null;
  readonly nowMs: number;
}

export interface BindingConflict {
  readonly differences: readonly { readonly field: string; readonly stored: string; readonly typed: string }[];
}

/** A binding as fields of its form. A reference is no secret, so that all of it is there. */
export function fieldsOfBinding(binding: HostBindingRecord): Readonly<Record<string, string>> {
  const {
    sentinel,
    allowed_hosts: allowed,
    body,
    keep_cookies: keepCookies,
    id: _,
    created_at: __,
    updated_at: ___,
    ...texts
  } = binding;
  return {
    ...Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text ?? ''])),
    allowed_hosts: allowed.join(', '),
    body: body === 'buffer' ? '' : body,
    keep_cookies: keepCookies === true ? 'true' : '',
    sentinel_value: sentinel?.value ?? '',
    sentinel_env: sentinel?.env ?? '',
  };
}

/** The form of a binding that is there. It says which state it is about, so that nobody's change is lost unseen. */
export function editBindingPage(view: BindingEditView): Page {
  const { details, form, scheme, references, revision, conflict } = view;
  const { id, host, owner } = details.binding;
  const path = `/bindings/${id}/edit`;
  const tabs = schemeTabs(scheme, (each) => `${path}?scheme=${each}`);
  const content = html`${pageHeader({
      title: 'Edit a host binding',
      lead: html`<span class="mono">${host}</span>, ${owner}. Another way of writing begins with what is stored.`,
      above: { path: `/bindings/${id}`, title: host },
    })}
    ${conflict === null ? formRefusal(form, bindingFormFields(scheme)) : conflictAlert(view, conflict)} ${tabs}
    <form class="panel stack" method="post" action="${path}">
      <input type="hidden" name="revision" value="${revision}" />
      ${bindingControls(form, scheme, references)}
      <div class="actions">
        <button class="primary">${conflict === null ? 'Save' : 'Save mine in its place'}</button>
        <a class="button" href="/bindings/${id}">Cancel</a>
      </div>
    </form>`;
  return layout('Edit a host binding', content, 'narrow');
}

function conflictAlert({ details, nowMs }: BindingEditView, { differences }: BindingConflict): Html {
  const { binding, lastChange } = details;
  const who = lastChange?.by === undefined || lastChange.by === null ? 'Somebody' : personWords(lastChange.by);
  return html`${alert(
    'bad',
    html`<p>
        <strong>Nothing was saved: the binding was changed meanwhile.</strong> ${who} changed it
        ${timeAgo(binding.updated_at, nowMs)}, after you had opened it.
      </p>
      <p>
        Take over below what you want to keep and save, or
        <a href="/bindings/${binding.id}/edit">begin anew with what is stored</a>.
      </p>`,
  )}
  ${differences.length === 0 ? html`<p class="quiet">What is stored is what you typed.</p>` : differenceTable(differences)}`;
}

function differenceTable(differences: BindingConflict['differences']): Html {
  return html`<div class="panel flush">
    ${dataTable<BindingConflict['differences'][number]>({
      caption: 'What differs',
      rows: differences,
      columns: [
        { title: 'Field', cell: ({ field }) => bindingFieldLabel(field) },
        { title: 'Stored now', cell: ({ stored }) => toShownText(stored) },
        { title: 'Yours', cell: ({ typed }) => toShownText(typed) },
      ],
    })}
  </div>`;
}

function toShownText(text: string): Html {
  return text === '' ? html`<span class="quiet">nothing</span>` : html`<code>${text}</code>`;
}
