import { html } from 'hono/html';
import type { IdentityRecord } from '../../../shared/wire/identities.ts';
import type { SealedOffer } from '../../sign_in/linking.ts';
import type { Identity } from '../../sign_in/provider.ts';
import { type Column, dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { emptyState } from '../components/empty_state.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The data of the page. */
interface IdentitiesView {
  readonly identities: readonly IdentityRecord[];
  /** The providers that can be added. */
  readonly providers: readonly { readonly name: string; readonly title: string }[];
  readonly nowMs: number;
}

/** The ways that a user signs in. */
export function identitiesPage({ identities, providers, nowMs }: IdentitiesView): Page {
  const add = providers.map(
    ({ name, title }) => html`<form method="post" action="/auth/${name}/link"><button>Add ${title}</button></form>`,
  );
  const lead = 'Each of them signs in to this account. Remove one that you no longer use.';
  const content = html`${pageHeader({ title: 'Ways to sign in', lead, actions: add })}
    <div class="panel flush">
      ${identities.length === 0 ? noIdentities() : dataTable({ caption: 'Ways to sign in', columns: columns(nowMs), rows: identities })}
    </div>`;
  return layout('Ways to sign in', content);
}

function noIdentities(): Html {
  const next = html`None yet. On your own machine you are signed in by the link that
    <code data-command>svc up</code> prints.`;
  return emptyState({ title: 'No way to sign in is linked', next, command: 'svc console' });
}

function columns(nowMs: number): Column<IdentityRecord>[] {
  return [
    { title: 'By', cell: ({ title }) => title },
    {
      title: 'Address',
      cell: ({ email, email_verified: isVerified }) => `${email}${isVerified ? '' : ' (not verified)'}`,
    },
    { title: 'Last used', cell: ({ last_used_at: used }) => timeAgo(used, nowMs) },
    { title: 'Remove', isActions: true, cell: removal },
  ];
}

function removal({ id, title, email }: IdentityRecord): Html {
  return html`<form method="post" action="/identities/remove">
    <input type="hidden" name="id" value="${id}" /><button
      class="compact danger"
      aria-label="Remove ${title}, ${email}"
    >
      Remove
    </button>
  </form>`;
}

/** The link to a provider to add a sign-in. It is a link because a form may not redirect to another site. */
export function linkStartPage({ title, url }: { readonly title: string; readonly url: string }): Page {
  const content = html`${pageHeader({
      title: `Add ${title} to the ways you sign in`,
      lead: 'Sign in there with your own account; you will return here.',
    })}
    <div class="actions"><a class="button primary" href="${url}">Continue to ${title}</a></div>`;
  return layout(`Add ${title}`, content, 'narrow');
}

/** The identity that was returned, and the question. */
export function linkQuestionPage(
  title: string,
  { email, emailVerified, displayName }: Identity,
  { offer, seal }: SealedOffer,
): Page {
  const content = html`${pageHeader({ title: 'Add this sign-in to your account?' })}
    ${definitionList([
      ['By', title],
      ['Address', `${email}${emailVerified ? '' : ' (not verified)'}`],
      ['Name there', displayName],
    ])}
    <p>Anybody who signs in with it will be able to do everything that you can do here.</p>
    <form method="post" action="/identities/link">
      <input type="hidden" name="offer" value="${offer}" />
      <input type="hidden" name="seal" value="${seal}" />
      <div class="actions">
        <button class="primary">Add it</button>
        <a class="button" href="/identities">That is not me</a>
      </div>
    </form>`;
  return layout('Add this sign-in?', content, 'card');
}
