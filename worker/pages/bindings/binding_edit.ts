import { html } from 'hono/html';
import { formatSize } from '../../../shared/model/quotas/byte_size.ts';
import type { InjectionScheme } from '../../../shared/model/host_binding.ts';
import type { HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { BindingDetails } from '../../services/bindings/binding_details.ts';
import { personWords } from './binding.ts';
import {
  bindingControls,
  type TypedReference,
  liveReference,
  bindingFieldLabel,
  bindingFormFields,
  schemeTabs,
} from './binding_form.ts';
import { alert } from '../components/alert.ts';
import { type Difference, differenceTable } from '../components/difference_table.ts';
import { type FormState, formRefusal, revisionField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

interface BindingEditView {
  readonly details: BindingDetails;
  readonly form: FormState;
  readonly scheme: InjectionScheme;
  readonly references: readonly string[];
  readonly reference: TypedReference;
  /** `updated_at` of the binding that the user edited: saving replaces only that state. */
  readonly revision: string;
  /** The stored binding and the input, if somebody else changed it first. */
  readonly conflict: BindingConflict | null;
  readonly nowMs: number;
}

export interface BindingConflict {
  readonly differences: readonly Difference[];
}

/** The form fields of a binding. All of them are shown, because a reference is not a secret. */
export function fieldsOfBinding(binding: HostBindingRecord): Readonly<Record<string, string>> {
  const {
    sentinel,
    allowed_hosts: allowed,
    body,
    keep_cookies: keepCookies,
    bytes_per_day: bytes,
    id: _,
    created_at: __,
    updated_at: ___,
    ...texts
  } = binding;
  return {
    ...Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, String(text ?? '')])),
    allowed_hosts: allowed.join(', '),
    body: body === 'buffer' ? '' : body,
    keep_cookies: keepCookies === true ? 'true' : '',
    bytes_per_day: bytes === undefined ? '' : formatSize(bytes),
    sentinel_value: sentinel?.value ?? '',
    sentinel_env: sentinel?.env ?? '',
  };
}

/** The form of an existing binding. It contains the state that it edits, so that no concurrent change is lost. */
export function editBindingPage(view: BindingEditView): Page {
  const { details, form, scheme, references, reference, revision, conflict } = view;
  const { id, host, owner } = details.binding;
  const path = `/bindings/${id}/edit`;
  const tabs = schemeTabs(scheme, (each) => `${path}?scheme=${each}`);
  const content = html`${pageHeader({
      title: 'Edit a binding',
      lead: html`<span class="mono">${host}</span>, ${owner}. Choosing another scheme keeps the stored values.`,
      above: { path: `/bindings/${id}`, title: host },
    })}
    ${details.sharing === null ? '' : alert('warn', sharingWords(details.sharing))}
    ${conflict === null ? formRefusal(form, bindingFormFields(scheme)) : conflictAlert(view, conflict)} ${tabs}
    <form class="panel stack" method="post" action="${path}" ${liveReference(owner)}>
      ${revisionField(revision)} ${bindingControls(form, scheme, { references, reference })}
      <div class="actions">
        <button class="primary">${conflict === null ? 'Save' : 'Save mine in its place'}</button>
        <a class="button" href="/bindings/${id}">Cancel</a>
      </div>
    </form>`;
  return layout('Edit a binding', content, 'narrow');
}

function sharingWords({ count, needsAcceptance }: NonNullable<BindingDetails['sharing']>): Html {
  const many = count === 1 ? 'once' : `${count} times`;
  const effect = needsAcceptance
    ? 'A change, also of its description, stops that until each of your colleagues accepts it again.'
    : 'A change holds for your colleagues at once.';
  return html`<p>
    <strong><a href="/shares">You share this binding</a> ${many}.</strong> ${effect} A wildcard without allowed hosts,
    or a binding without an effect, cannot be shared: saving one pauses the share.
  </p>`;
}

function conflictAlert({ details, nowMs }: BindingEditView, { differences }: BindingConflict): Html {
  const { binding, lastChange } = details;
  const who = lastChange?.by === undefined || lastChange.by === null ? 'Somebody' : personWords(lastChange.by);
  return html`${alert(
    'bad',
    html`<p>
        <strong>Nothing was saved: the binding was changed meanwhile.</strong> ${who} changed it
        ${timeAgo(binding.updated_at, nowMs)}, after you opened it.
      </p>
      <p>
        Edit the fields below and save, or
        <a href="/bindings/${binding.id}/edit">start again with the stored values</a>.
      </p>`,
  )}
  ${differenceTable(differences, bindingFieldLabel)}`;
}
