import { html } from 'hono/html';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { SidecarRecord } from '../../../shared/wire/sidecars.ts';
import { flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import type { FormState } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { PAGE_WORDS, pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** A connected sidecar calls at least this often; the last call is known to the minute. */
const CONNECTED_MS = 3 * 60_000;

interface SidecarsView {
  readonly sidecars: ListPage<SidecarRecord>;
  readonly cursor: string | undefined;
  readonly isLocal: boolean;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The sidecars that may receive credentials, and when they last called. */
export function sidecarsPage({ sidecars, cursor, isLocal, done, nowMs }: SidecarsView): Page {
  const content = html`${pageHeader({
      title: 'Sidecars',
      lead: 'Each adds your credentials to the requests of the agents on its machine. Revoke one that you no longer use.',
    })}
    ${flash(done)}
    <div class="panel flush">${sidecars.items.length === 0 ? noSidecars(isLocal) : table(sidecars.items, nowMs)}</div>
    ${pager('/sidecars', { cursor }, sidecars.next_cursor, PAGE_WORDS)}`;
  return layout('Sidecars', content);
}

/** On one's own machine, one command starts both programs. */
export function sidecarCommand(isLocal: boolean): string {
  return isLocal ? 'svc up --detach' : 'svc login && svc sidecar';
}

function noSidecars(isLocal: boolean): Html {
  return emptyState({
    title: 'No sidecar has started yet',
    next: isLocal ? 'It starts with svc on this machine:' : 'On the machine of your agents, sign in and start one:',
    command: sidecarCommand(isLocal),
  });
}

function table(sidecars: readonly SidecarRecord[], nowMs: number): Html {
  return dataTable<SidecarRecord>({
    caption: 'Sidecars',
    rows: sidecars,
    columns: [
      {
        title: 'Sidecar',
        cell: ({ name, id }) => html`<strong>${foreignText(name)}</strong> <span class="sub mono">${id}</span>`,
      },
      { title: 'State', cell: (sidecar) => stateBadge(sidecar, nowMs) },
      { title: 'Last seen', cell: ({ last_seen_at: seen }) => (seen === null ? 'never' : timeAgo(seen, nowMs)) },
      { title: 'Added', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
      { title: 'Revoke', isActions: true, cell: revocation },
    ],
  });
}

function stateBadge({ revoked_at: revoked, last_seen_at: seen }: SidecarRecord, nowMs: number): Html {
  if (revoked !== null) return badge('bad', 'revoked');
  if (seen === null) return badge('plain', 'never called');
  return nowMs - Date.parse(seen) <= CONNECTED_MS ? badge('good', 'connected') : badge('plain', 'away');
}

function revocation({ id, name, revoked_at: revoked }: SidecarRecord): Html | string {
  if (revoked !== null) return '';
  return html`<a class="button compact danger" href="/sidecars/${id}/revoke"
    >Revoke<span class="hidden-but-read"> ${name}</span></a
  >`;
}

export function sidecarRevocationPage({ id, name }: SidecarRecord, form: FormState): Page {
  return confirmPage({
    title: 'Revoke a sidecar?',
    consequence: html`<strong>${foreignText(name)}</strong> is refused from its next call on, and deletes the
      credentials it holds. To get another one, its machine must be signed in again.`,
    name,
    action: `/sidecars/${id}/revoke`,
    button: 'Revoke it',
    hidden: {},
    above: { path: '/sidecars', title: 'Sidecars' },
    form,
  });
}
