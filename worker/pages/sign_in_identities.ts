import { html } from 'hono/html';
import type { IdentityRecord } from '../../shared/wire/identities.ts';
import type { SealedOffer } from '../sign_in/linking.ts';
import type { Identity } from '../sign_in/provider.ts';
import { type Html, layout } from './layout.ts';

/** What the page shows. */
export interface IdentitiesView {
  readonly identities: readonly IdentityRecord[];
  /** The providers that one can be added of. */
  readonly providers: readonly { readonly name: string; readonly title: string }[];
}

/** The ways that a user signs in. */
export function identitiesPage({ identities, providers }: IdentitiesView): Html {
  return layout(
    'Ways you sign in',
    html`<h1>Ways you sign in</h1>
      ${identities.length === 0 ? html`<p>None yet.</p>` : identityTable(identities)}
      ${providers.map(
        ({ name, title }) => html`<form method="post" action="/auth/${name}/link"><button>Add ${title}</button></form>`,
      )}`,
  );
}

function identityTable(identities: readonly IdentityRecord[]): Html {
  return html`<div class="scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">By</th>
          <th scope="col">Address</th>
          <th scope="col">Last used (UTC)</th>
          <th scope="col"></th>
        </tr>
      </thead>
      <tbody>
        ${identities.map((identity) => identityRow(identity))}
      </tbody>
    </table>
  </div>`;
}

function identityRow({ id, title, email, email_verified: isVerified, last_used_at: used }: IdentityRecord): Html {
  return html`<tr>
    <td>${title}</td>
    <td>${email}${isVerified ? '' : ' (not verified)'}</td>
    <td class="time"><time datetime="${used}">${used.slice(0, 19).replace('T', ' ')}</time></td>
    <td>
      <form method="post" action="/identities/remove">
        <input type="hidden" name="id" value="${id}" /><button aria-label="Remove ${title}, ${email}">Remove</button>
      </form>
    </td>
  </tr>`;
}

/** The way to a provider to add a sign-in there. It is a link: a form may not lead to another site. */
export function linkStartPage({ title, url }: { readonly title: string; readonly url: string }): Html {
  return layout(
    `Add ${title}`,
    html`<h1>Add ${title} to the ways you sign in</h1>
      <p>Sign in there as yourself, and come back.</p>
      <p><a class="button" href="${url}">Continue to ${title}</a></p>`,
  );
}

/** Who it is that came back, and the question. */
export function linkQuestionPage(
  title: string,
  { email, emailVerified, displayName }: Identity,
  { offer, seal }: SealedOffer,
): Html {
  return layout(
    'Add this sign-in?',
    html`<h1>Add this sign-in to your account?</h1>
      <dl>
        <dt>By</dt>
        <dd>${title}</dd>
        <dt>Address</dt>
        <dd>${email}${emailVerified ? '' : ' (not verified)'}</dd>
        <dt>Name there</dt>
        <dd>${displayName}</dd>
      </dl>
      <p>Whoever signs in by it will be able to do all that you may do here.</p>
      <form method="post" action="/identities/link">
        <input type="hidden" name="offer" value="${offer}" />
        <input type="hidden" name="seal" value="${seal}" />
        <p><button>Add it</button></p>
      </form>
      <p><a href="/identities">That is not me</a></p>`,
  );
}
