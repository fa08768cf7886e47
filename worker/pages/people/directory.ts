import { html } from 'hono/html';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { type CreatedScimToken, MAX_SCIM_TOKEN_DAYS, type ScimTokenRecord } from '../../../shared/wire/scim_tokens.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

const ABOVE = { path: '/directory', title: 'Directory' };
/** A token that ends sooner is shown as a warning: without one, nobody is removed any more. */
const SOON_MS = 30 * 24 * 3600 * 1000;

interface DirectoryView {
  readonly tokens: ListPage<ScimTokenRecord>;
  /** Whether the caller may create tokens. */
  readonly mayCreate: boolean;
  readonly form: FormState;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The tokens with which the directory of the enterprise manages members and groups. */
export function directoryPage({ tokens, mayCreate, form, cursor, done, nowMs }: DirectoryView): Page {
  const content = html`${pageHeader({
      title: 'Directory',
      lead: 'Your directory, such as Okta or Entra, manages members and groups by SCIM 2.0. It may remove admins and owners, so only owners create tokens.',
    })}
    ${flash(done)}
    <div class="panel flush">
      ${
        tokens.items.length === 0
          ? emptyState({ title: 'No directory is connected', next: 'An owner creates a token for it.' })
          : dataTable<ScimTokenRecord>({
              caption: 'Tokens of the directory',
              rows: tokens.items,
              columns: [
                {
                  title: 'Token',
                  cell: ({ name, id }) =>
                    html`<strong>${foreignText(name)}</strong> <span class="sub mono">${id}</span>`,
                },
                { title: 'State', cell: (token) => stateBadge(token, nowMs) },
                { title: 'Last used', cell: ({ last_used_at: at }) => (at === null ? 'never' : timeAgo(at, nowMs)) },
                { title: 'Expires', cell: ({ expires_at: end }) => writtenTime(end) },
                { title: 'Revoke', isActions: true, cell: revocation },
              ],
            })
      }
    </div>
    ${pager('/directory', { cursor }, tokens.next_cursor, PAGE_WORDS)} ${mayCreate ? newTokenForm(form) : ''}`;
  return layout('Directory', content);
}

function stateBadge({ revoked_at: revoked, expires_at: end }: ScimTokenRecord, nowMs: number): Html {
  if (revoked !== null) return badge('plain', 'revoked');
  const leftMs = Date.parse(end) - nowMs;
  if (leftMs <= 0) return badge('bad', 'expired');
  return leftMs < SOON_MS ? badge('warn', 'expires soon') : badge('good', 'active');
}

function revocation({ id, name, revoked_at: revoked }: ScimTokenRecord): Html | string {
  if (revoked !== null) return '';
  return html`<a class="button compact danger" href="/directory/tokens/${id}/revoke"
    >Revoke<span class="hidden-but-read"> ${name}</span></a
  >`;
}

function newTokenForm(form: FormState): Html {
  return html`<form class="panel stack" method="post" action="/directory/tokens" aria-label="New token">
    ${formRefusal(form, ['name', 'expires_in_days'])}
    ${textField(form, { name: 'name', label: 'Name of a new token', hint: 'Which directory uses it, such as Okta', isRequired: true, maxLength: 100 })}
    ${textField(form, { name: 'expires_in_days', label: 'Days until it expires', hint: `1 to ${MAX_SCIM_TOKEN_DAYS}`, isRequired: true, maxLength: 3 })}
    <div class="actions"><button class="primary">Create</button></div>
  </form>`;
}

/** The only page that shows the token. */
export function createdScimTokenPage({ name, token, base_url: url, expires_at: end }: CreatedScimToken): Page {
  const content = html`${pageHeader({ title: 'Copy the token now', above: ABOVE })}
    ${alert('warn', 'No page and no reply shows it again: only its hash is stored.')}
    <div class="panel">
      ${codeBlock(token)}
      ${definitionList([
        ['Name', foreignText(name)],
        ['Base URL', html`<code>${url}</code>`],
        ['Expires', writtenTime(end)],
      ])}
      <div class="actions"><a class="button primary" href="/directory">I have it</a></div>
    </div>`;
  return layout('Copy the token now', content, 'narrow');
}

export function scimTokenRevocationPage({ id, name }: ScimTokenRecord, form: FormState): Page {
  return confirmPage({
    title: 'Revoke a token of the directory?',
    consequence: html`The next call with <strong>${foreignText(name)}</strong> is refused. Without another token, the
      directory removes nobody any more, and admins change its groups by hand.`,
    name,
    action: `/directory/tokens/${id}/revoke`,
    button: 'Revoke it',
    hidden: {},
    above: ABOVE,
    form,
  });
}
