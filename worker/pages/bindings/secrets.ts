import { html } from 'hono/html';
import { BORROWED_KIND } from '../../../shared/model/source_kind.ts';
import { type AnySourceKind, SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import type { SecretRecord } from '../../../shared/wire/secrets.ts';
import type { CredentialUse, VaultUse } from '../../services/vault/credential_uses.ts';
import { alert, flash } from '../components/alert.ts';
import { arrangedList, byNewest, byText, type ListQuery } from '../components/arranged_list.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { type OwnerChoice, ownerField } from './owner_field.ts';
import { removalEffects, type RemovalView } from './removal_effects.ts';
import { LAST_USED_NOTE, lastUsedWords, useLink } from './use_words.ts';
import { tag } from '../components/tag.ts';

const ABOVE = { path: '/secrets', title: 'Secrets' };

interface SecretsView {
  readonly use: VaultUse;
  /** What mints the value; null if it is stored. */
  readonly sourceOf: (secret: SecretRecord) => { readonly kind: AnySourceKind; readonly isFailing: boolean } | null;
  readonly query: ListQuery;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the user may change what the enterprise owns. */
  readonly isAdmin: boolean;
}

/** The secrets in the vault, without their values. */
export function secretsPage(view: SecretsView): Page {
  const { use, query, done } = view;
  const list = arrangedList<SecretRecord>({
    kind: {
      path: '/secrets',
      words: ['secret', 'secrets'],
      placeholder: 'github, a host, a description …',
      textOf: (secret) => [secret.ref, secret.description, secret.owner, ...namesOf(use.usersOf(secret))].join(' '),
      orders: [
        { name: 'path', title: 'By reference', compare: byText(({ owner, path }) => `${owner} ${path}`) },
        { name: 'used', title: 'Last used first', compare: byNewest((secret) => use.lastFetchOf(secret)) },
        { name: 'unused', title: 'Used by nothing first', compare: (a, b) => usersIn(use, a) - usersIn(use, b) },
        { name: 'stored', title: 'Last stored first', compare: byNewest(({ updated_at: updated }) => updated) },
      ],
    },
    query,
    ...use.secrets,
    table: (shown) => table(view, shown),
    none: noSecrets(),
  });
  const content = html`${pageHeader({
    title: 'Secrets',
    lead: 'Write-only: no page shows a value. Bindings and connectors add it to requests.',
    actions: html`<a class="button" href="/secrets/sources/new">Add a minted secret</a>
      <a class="button primary" href="/secrets/new">Store a secret</a>`,
  })}
  ${flash(done)} ${list} ${use.secrets.items.length === 0 ? '' : LAST_USED_NOTE}`;
  return layout('Secrets', content);
}

function namesOf(users: readonly CredentialUse[]): string[] {
  return users.map(({ name }) => name);
}

function usersIn(use: VaultUse, secret: SecretRecord): number {
  return use.usersOf(secret).length;
}

function noSecrets(): Html {
  return emptyState({
    title: 'The vault is empty',
    next: 'Store the first credential here, or in a terminal, where it is asked for without an echo:',
    command: 'svc secret set user/demo',
    action: html`<a class="button primary" href="/secrets/new">Store a secret</a>`,
  });
}

function table({ use, sourceOf, nowMs, isAdmin }: SecretsView, shown: readonly SecretRecord[]): Html {
  return dataTable<SecretRecord>({
    caption: 'Secrets',
    rows: shown,
    key: ({ id }) => id,
    columns: [
      {
        title: 'Reference',
        cell: (secret) => referenceCell(secret, sourceOf(secret)),
      },
      { title: 'Used by', cell: (secret) => usersCell(use.usersOf(secret)) },
      { title: 'Last used', cell: (secret) => lastUsedWords(use.lastFetchOf(secret), nowMs) },
      { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
      {
        title: 'Stored',
        cell: ({ updated_at: updated, version }) =>
          html`${timeAgo(updated, nowMs)}
          ${version === 1 ? '' : html`<span class="sub nowrap">version ${version}</span>`}`,
      },
      {
        title: 'Actions',
        isActions: true,
        cell: (secret) => (isAdmin || secret.owner === 'personal' ? actions(secret, sourceOf(secret)) : ''),
      },
    ],
  });
}

const MOST_USERS = 3;

function usersCell(users: readonly CredentialUse[]): Html {
  if (users.length === 0) return html`<span class="quiet">nothing</span>`;
  const more = users.length - MOST_USERS;
  return html`<ul class="plain">
    ${users.slice(0, MOST_USERS).map((use) => html`<li>${useLink(use)}</li>`)}
    ${more > 0 ? html`<li class="quiet small">and ${more} more</li>` : ''}
  </ul>`;
}

type MintedBy = ReturnType<SecretsView['sourceOf']>;

function referenceCell({ ref, description, path, owner }: SecretRecord, mintedBy: MintedBy): Html {
  const about = description === null ? '' : html`<span class="sub">${foreignText(description)}</span>`;
  if (mintedBy === null) return html`<code>${ref}</code> ${about}`;
  const { kind, isFailing } = mintedBy;
  return html`<a href="${pathWith('/secrets/source', { path, owner })}"><code>${ref}</code></a>
    <span class="sub"
      >${kind === BORROWED_KIND ? 'borrowed' : 'minted'}:
      ${SOURCE_TABLE[kind].title}${isFailing ? html`, <strong>failing</strong>` : ''}</span
    >
    ${about}`;
}

function actions({ path, owner }: SecretRecord, mintedBy: MintedBy): Html {
  const replace =
    mintedBy === null
      ? pathWith('/secrets/new', { path, owner })
      : pathWith('/secrets/sources/new', { kind: mintedBy.kind, path, owner });
  return html`<div class="actions">
    <a class="button compact" href="${replace}"
      >${mintedBy === null ? 'Replace' : 'Change'}<span class="hidden-but-read"> ${path}</span></a
    >
    <a class="button compact danger" href="${pathWith('/secrets/delete', { path, owner })}"
      >Delete<span class="hidden-but-read"> ${path}</span></a
    >
  </div>`;
}

const SHOWN = ['path', 'value', 'description', 'owner'];

/** The form for a value. The value is never returned, not even after an error. */
export function newSecretPage(form: FormState, owners: OwnerChoice): Page {
  const content = html`${pageHeader({ title: 'Store a secret', above: ABOVE, lead: 'If the path has a secret, its value is replaced.' })}
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
      ${ownerField(form, owners)}
      <div class="actions"><button class="primary">Store</button> <a class="button" href="/secrets">Cancel</a></div>
    </form>`;
  return layout('Store a secret', content, 'narrow');
}

/** Asks whether to delete a secret. One that something refers to cannot be deleted: what would break is named instead. */
export function secretDeletionPage({ preview, nowMs }: RemovalView, form: FormState): Page {
  const { name: path, owner, allowed } = preview;
  if (!allowed) return secretInUsePage(path, removalEffects(preview, nowMs));
  return confirmPage({
    title: 'Delete a secret?',
    consequence: html`This deletes <code>vault://${path}</code>.`,
    effects: removalEffects(preview, nowMs),
    name: path,
    action: '/secrets/delete',
    button: 'Delete it',
    hidden: { path, owner },
    above: ABOVE,
    form,
  });
}

function secretInUsePage(path: string, effects: Html): Page {
  const title = 'This secret is in use';
  const content = html`${pageHeader({ title, above: ABOVE, lead: html`<span class="mono">vault://${path}</span>` })}
    ${alert('warn', html`<p>It cannot be deleted yet. Change or delete first what uses it.</p>`)}
    <div class="panel">${effects}</div>
    <div class="actions"><a class="button" href="${ABOVE.path}">Back to the secrets</a></div>`;
  return layout(title, content, 'narrow');
}
