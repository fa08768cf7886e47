import { html } from 'hono/html';
import type { Role } from '../../../shared/model/role.ts';
import type { JoinOffer, JoinRequestRecord } from '../../../shared/wire/people/join_requests.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

const LIST = '/members/requests';
const STATE_KINDS = {
  open: 'accent',
  accepted: 'good',
  declined: 'plain',
  withdrawn: 'plain',
  expired: 'plain',
} as const;

interface RequestsView {
  readonly requests: ListPage<JoinRequestRecord>;
  /** The roles that the caller may give. */
  readonly roles: readonly Role[];
  readonly cursor: string | undefined;
  readonly done: string | undefined;
}

/** Who asks to join the enterprise. */
export function joinRequestsPage({ requests, roles, cursor, done }: RequestsView): Page {
  const content = html`${pageHeader({
      title: 'Requests to join',
      above: { path: '/members', title: 'Members' },
      lead: 'From people who have proven an address of your domains. They chose their name themselves.',
    })}
    ${flash(done)}
    <div class="panel flush">
      ${
        requests.items.length === 0
          ? emptyState({
              title: 'Nobody asks to join',
              next: html`<a href="/enterprise">The settings of the enterprise</a> say who may ask.`,
            })
          : dataTable<JoinRequestRecord>({
              caption: 'Requests to join',
              rows: requests.items,
              columns: [
                { title: 'Address', cell: ({ email }) => foreignText(email) },
                { title: 'Name', cell: ({ display_name: name }) => foreignText(name) },
                { title: 'State', cell: ({ state }) => badge(STATE_KINDS[state], state) },
                { title: 'Ends', cell: ({ expires_at: expires }) => writtenTime(expires) },
                { title: 'Decide', isActions: true, cell: (request) => decisionForms(request, roles) },
              ],
            })
      }
    </div>
    ${pager(LIST, { cursor }, requests.next_cursor, PAGE_WORDS)}`;
  return layout('Requests to join', content);
}

function decisionForms({ id, email, state }: JoinRequestRecord, roles: readonly Role[]): Html | string {
  if (state !== 'open') return '';
  const name = `role-of-${id}`;
  return html`<form method="post" action="${LIST}/${id}/accept">
      <label class="hidden-but-read" for="${name}">Role of ${email}</label>
      <select id="${name}" name="role">
        ${roles.map((role) => html`<option value="${role}">${role}</option>`)}
      </select>
      <button class="compact primary">Accept<span class="hidden-but-read"> ${email}</span></button>
    </form>
    <form method="post" action="${LIST}/${id}/decline">
      <button class="compact danger">Decline<span class="hidden-but-read"> ${email}</span></button>
    </form>`;
}

/** The enterprises that a person may ask to join, on the page of the person's enterprises. */
export function joinOffersSection(offers: readonly JoinOffer[]): Html | string {
  if (offers.length === 0) return '';
  return html`<section class="stack" aria-labelledby="offers-title">
    <h2 id="offers-title">Enterprises of your addresses</h2>
    ${alert('info', 'One of their admins decides. Your user here stays, with all that is yours.')}
    <div class="panel flush">
      ${dataTable<JoinOffer>({
        caption: 'Enterprises of your addresses',
        rows: offers,
        columns: [
          { title: 'Enterprise', cell: ({ name }) => html`<strong>${foreignText(name)}</strong>` },
          { title: 'Your address', cell: ({ email }) => foreignText(email) },
          { title: 'Join', isActions: true, cell: offerForm },
        ],
      })}
    </div>
  </section>`;
}

function offerForm({ enterprise_id: id, name, request }: JoinOffer): Html {
  if (request?.state === 'open') {
    return html`<form method="post" action="/enterprises/requests/${request.id}/withdraw">
      ${badge('accent', 'asked')}
      <button class="compact">Take back<span class="hidden-but-read"> the request to ${name}</span></button>
    </form>`;
  }
  if (request?.state === 'declined') return badge('plain', 'declined');
  return html`<form method="post" action="/enterprises/${id}/ask">
    <button class="compact">Ask to join<span class="hidden-but-read"> ${name}</span></button>
  </form>`;
}
