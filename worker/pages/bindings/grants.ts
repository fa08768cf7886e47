import { html } from 'hono/html';
import { approvalTarget } from '../../../shared/wire/approvals.ts';
import type { GrantRecord, GrantState } from '../../../shared/wire/approval_grants.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { sessionPath } from '../audit/event_table.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

const STATES: { readonly [S in GrantState]: { readonly kind: BadgeKind; readonly word: string } } = {
  open: { kind: 'warn', word: 'In force' },
  over: { kind: 'plain', word: 'Ended' },
  used_up: { kind: 'plain', word: 'Used up' },
  changed: { kind: 'plain', word: 'Ended: the connector, the server or a rule changed' },
  giver_left: { kind: 'plain', word: 'Ended: who gave it may not approve any more' },
  revoked: { kind: 'plain', word: 'Revoked' },
};

/** The grants, open and ended, with a way to revoke each open one. */
export function grantsTable({ items }: ListPage<GrantRecord>, nowMs: number, nameOf: NameOf): Html {
  if (items.length === 0) {
    return emptyState({
      title: 'Nothing is allowed in advance',
      next: 'With an approval you can allow further requests like it, for a while. They are listed here.',
    });
  }
  return dataTable<GrantRecord>({
    caption: 'Grants',
    rows: items,
    key: ({ id, state, used }) => `${id} ${state} ${used}`,
    columns: [
      { title: 'Given', cell: (grant) => givenCell(grant, nowMs, nameOf) },
      {
        title: 'Allows',
        cell: (grant) =>
          html`<span class="mono">${foreignText(grant.summary)}</span>
            <span class="sub">${foreignText(approvalTarget(grant))}, ${coverage(grant)}</span>`,
      },
      { title: 'Session', cell: (grant) => sessionCell(grant, nameOf) },
      { title: 'Used', cell: ({ used, times }) => (times === null ? String(used) : `${used} of ${times}`) },
      { title: 'State', cell: (grant) => stateCell(grant, nowMs) },
      { title: 'Revoke', isActions: true, cell: (grant) => (grant.state === 'open' ? revokeForm(grant) : '') },
    ],
  });
}

/** A session's name and id, with a link to what it did; a machine for what ran outside of one. */
export function sessionWords(asker: {
  readonly session: string | null;
  readonly name: string | null;
  readonly machine: string | null;
}): Html | string {
  const { session, name, machine } = asker;
  if (session === null) return machine === null ? '' : html`<code>${foreignText(machine)}</code>`;
  const link = html`<a class="mono" href="${sessionPath(session)}">${foreignText(session)}</a>`;
  return name === null ? link : html`${foreignText(name)} <span class="sub">${link}</span>`;
}

function givenCell({ given_at: at, given_by: by }: GrantRecord, nowMs: number, nameOf: NameOf): Html {
  const names = by.map((user) => nameOf(user) ?? user).join(', ');
  return html`${timeAgo(at, nowMs)}<span class="sub">by ${foreignText(names)}</span>`;
}

function coverage({ identical_only: isIdentical }: GrantRecord): string {
  return isIdentical ? 'identical requests' : 'with any query and body';
}

/** The session, on which machine; its id is at hand as a title. */
function sessionCell(
  { session_id: session, session_name: name, sidecar_id: sidecar }: GrantRecord,
  nameOf: NameOf,
): Html | string {
  const machine = sidecar === null ? null : (nameOf(sidecar) ?? sidecar);
  const words = sessionWords({ session, name, machine });
  if (session === null || machine === null) return words;
  return html`${words}<span class="sub" title="${sidecar ?? ''}">on ${foreignText(machine)}</span>`;
}

function stateCell({ state, ends_at: ends }: GrantRecord, nowMs: number): Html {
  const { kind, word } = STATES[state];
  return html`${badge(kind, word)}
  ${state === 'open' ? html`<span class="sub">ends ${timeAgo(ends, nowMs)}</span>` : ''}`;
}

function revokeForm(grant: GrantRecord): Html {
  return html`<form method="post" action="/approval-grants/${grant.id}/revoke" class="actions" data-island="decide">
    <button class="compact danger">
      Revoke<span class="hidden-but-read"> ${approvalTarget(grant)}, ${grant.summary}</span>
    </button>
  </form>`;
}
