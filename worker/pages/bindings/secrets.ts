import { html } from 'hono/html';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import { flash } from '../components/alert.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager, pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { ownerField } from './owner_field.ts';

const ABOVE = { path: '/secrets', title: 'Secrets' };

interface SecretsView {
  readonly secrets: ListPage<SecretRecord>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the user may change what the enterprise owns. */
  readonly isAdmin: boolean;
}

/** The secrets in the vault, without their values. */
export function secretsPage(view: SecretsView): Page {
  const { secrets, cursor, done } = view;
  const content = html`${pageHeader({
      title: 'Secrets',
      lead: 'Write-only: no page shows a value. Bindings and connectors add it to requests.',
      actions: html`<a class="button primary" href="/secrets/new">Store a secret</a>`,
    })}
    ${flash(done)}
    <div class="panel flush">${secrets.items.length === 0 ? noSecrets() : table(view)}</div>
    ${pager('/secrets', { cursor }, secrets.next_cursor)}`;
  return layout('Secrets', content);
}

function noSecrets(): Html {
  return emptyState({
    title: 'The vault is empty',
    next: 'Store the first credential here, or in a terminal, where it is asked for without an echo:',
    command: 'svc secret set user/demo',
    action: html`<a class="button primary" href="/secrets/new">Store a secret</a>`,
  });
}

function table({ secrets, nowMs, isAdmin }: SecretsView): Html {
  return dataTable<SecretRecord>({
    caption: 'Secrets',
    rows: secrets.items,
    columns: [
      {
        title: 'Reference',
        cell: ({ ref, description }) =>
          html`<code>${ref}</code>
            ${description === null ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      { title: 'Owner', cell: ({ owner }) => html`<span class="tag">${owner}</span>` },
      { title: 'Version', cell: ({ version }) => html`<span class="number">${version}</span>` },
      { title: 'Stored', cell: ({ updated_at: updated }) => timeAgo(updated, nowMs) },
      {
        title: 'Actions',
        isActions: true,
        cell: (secret) => (isAdmin || secret.owner === 'personal' ? actions(secret) : ''),
      },
    ],
  });
}

function actions({ path, owner }: SecretRecord): Html {
  return html`<div class="actions">
    <a class="button compact" href="${pathWith('/secrets/new', { path, owner })}"
      >Replace<span class="hidden-but-read"> ${path}</span></a
    >
    <a class="button compact danger" href="${pathWith('/secrets/delete', { path, owner })}"
      >Delete<span class="hidden-but-read"> ${path}</span></a
    >
  </div>`;
}

const SHOWN = ['path', 'value', 'description', 'owner'];

/** The form for a value. The value is never returned, not even after an error. */
export function newSecretPage(form: FormState, isAdmin: boolean): Page {
  const content = html`${pageHeader({ title: 'Store a secret', above: ABOVE, lead: 'An existing secret gets the new value.' })}
    ${formRefusal(form, SHOWN)}
    <form class="panel stack" method="post" action="/secrets">
      ${textField(form, {
        name: 'path',
        label: 'Path',
        hint: html`The name in bindings, such as <code>user/github</code> for <code>vault://user/github</code>`,
        isRequired: true,
        isMono: true,
        maxLength: 255,
      })}
      ${textField(form, { name: 'value', label: 'Value', hint: 'The credential itself. No page shows it again.', isRequired: true, isSecret: true, isMono: true })}
      ${textField(form, { name: 'description', label: 'Description (optional)', maxLength: 500 })}
      ${ownerField(form, isAdmin)}
      <div class="actions"><button class="primary">Store</button> <a class="button" href="/secrets">Cancel</a></div>
    </form>`;
  return layout('Store a secret', content, 'narrow');
}

export function secretDeletionPage(path: string, owner: string, form: FormState): Page {
  return confirmPage({
    title: 'Delete a secret?',
    consequence: html`The value at <code>vault://${path}</code> is permanently deleted. Sidecars delete their copies at
      once.`,
    name: path,
    action: '/secrets/delete',
    button: 'Delete it',
    hidden: { path, owner },
    above: ABOVE,
    form,
  });
}
