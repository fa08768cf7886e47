import { html } from 'hono/html';
import type { PendingApproval } from '../../services/approvals/pending_approvals.ts';
import { type ApprovalRecord, type ApprovalState, approvalTarget } from '../../../shared/wire/approvals.ts';
import type { GrantRecord } from '../../../shared/wire/approval_grants.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { flash } from '../components/alert.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { approvalCard, isHeld } from './approval_card.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { grantsTable, sessionWords } from './grants.ts';
import { layout, type Page } from '../frame/layout.ts';

interface ApprovalsView {
  readonly approvals: ListPage<ApprovalRecord>;
  readonly cursor: string | undefined;
  readonly nowMs: number;
}

interface PendingView {
  readonly pending: readonly PendingApproval[];
  readonly done: string | undefined;
  readonly nowMs: number;
}

const STATES: { readonly [S in ApprovalState]: { readonly kind: BadgeKind; readonly word: string } } = {
  pending: { kind: 'warn', word: 'Waiting' },
  approved: { kind: 'good', word: 'Approved' },
  denied: { kind: 'bad', word: 'Denied' },
  expired: { kind: 'plain', word: 'Expired' },
  used: { kind: 'good', word: 'Approved and used' },
};

const LEAD =
  'Requests of connectors and MCP servers that need your approval. A request is held for a minute; a later approval covers one identical request.';

/** The requests that wait for a decision: first those whose agents still wait. */
export function pendingApprovalsPage({ pending, done, nowMs }: PendingView): Page {
  const held = pending.filter(({ record }) => isHeld(record, nowMs));
  const others = pending.filter(({ record }) => !isHeld(record, nowMs));
  const content = html`${pageHeader({ title: 'Approvals', lead: LEAD })} ${flash(done)}
    <p class="live" data-island="notify">
      <span data-live-of="approvals" role="status">As of now</span> <a href="/approvals">Reload</a>
    </p>
    <div class="stack" id="approvals" data-island="live-list" data-events="connector.approval.">
      ${pending.length === 0 ? html`<div class="panel flush">${nothingWaits()}</div>` : ''}
      ${cards('held', 'Agents wait for these', held, nowMs)}
      ${cards('given-up', 'Given up. If you decide now, it applies when the agent tries again.', others, nowMs)}
    </div>`;
  return layout('Approvals', content);
}

/** The cards of both groups are siblings: one that is given up goes to the other group with all that is shown in it. */
function cards(key: string, title: string, pending: readonly PendingApproval[], nowMs: number): Html | string {
  if (pending.length === 0) return '';
  return html`<h2 data-key="${key}">${title}</h2>
    ${pending.map((each) => approvalCard(each, nowMs))}`;
}

/** All approvals, also decided and expired ones. */
export function approvalsPage(view: ApprovalsView): Page {
  const { approvals } = view;
  return liveList(
    'all',
    { ...view, next: approvals.next_cursor },
    approvals.items.length === 0 ? nothing() : table(view),
  );
}

interface GrantsView {
  readonly grants: ListPage<GrantRecord>;
  readonly nameOf: NameOf;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** What is allowed in advance. */
export function grantsPage({ grants, nowMs, nameOf, ...view }: GrantsView): Page {
  return liveList('grants', { ...view, next: grants.next_cursor }, grantsTable(grants, nowMs, nameOf));
}

interface ListView {
  readonly cursor: string | undefined;
  readonly done?: string | undefined;
  readonly next: string | null;
}

function liveList(state: 'all' | 'grants', { cursor, done, next }: ListView, list: Html): Page {
  const content = html`${pageHeader({ title: 'Approvals', lead: LEAD })} ${flash(done)}
    <p class="live">
      <span data-live-of="approvals" role="status">As of now</span> <a href="/approvals?state=${state}">Reload</a>
    </p>
    <div class="panel flush" id="approvals" data-island="live-list" data-events="connector.approval.">${list}</div>
    ${pager('/approvals', { state, cursor }, next)}`;
  return layout('Approvals', content);
}

interface OneView {
  readonly record: ApprovalRecord;
  /** If it waits. */
  readonly pending: PendingApproval | null;
  readonly nameOf: NameOf;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** One approval, where messages link to: its card while it waits, what became of it afterwards. */
export function approvalPage({ record, pending, nameOf, done, nowMs }: OneView): Page {
  const content = html`${pageHeader({ title: 'Approval', lead: LEAD, above: { path: '/approvals', title: 'Approvals' } })}
    ${flash(done)}
    <p class="live">
      <span data-live-of="approvals" role="status">As of now</span> <a href="/approvals/${record.id}">Reload</a>
    </p>
    <div class="stack" id="approvals" data-island="live-list" data-events="connector.approval.">
      ${pending === null ? outcome(record, nameOf, nowMs) : approvalCard(pending, nowMs)}
    </div>
    <p class="small">
      <a href="/audit?${new URLSearchParams({ q: record.id }).toString()}">In the audit log</a>
    </p>`;
  return layout('Approval', content, 'narrow');
}

const OUTCOMES: { readonly [S in ApprovalState]: string } = {
  pending: 'It waits no longer: nobody decided within an hour.',
  approved: 'It was approved: one identical request may go through until its time ends. There is nothing to decide.',
  denied: 'It was denied: identical requests are refused for fifteen minutes. There is nothing to decide.',
  expired:
    'It has expired: nobody decided in time, it was approved and not used, or something has changed: the connector or server, the rules about who approves, or who approved it. If the agent tries again, it asks again.',
  used: 'It was approved, and the request went through. There is nothing to decide.',
};

function outcome(record: ApprovalRecord, nameOf: NameOf, nowMs: number): Html {
  const { decided_by: by, decided_at: at } = record;
  const facts: readonly (readonly [string, Html | null])[] = [
    ['Operation', html`<code>${foreignText(approvalTarget(record))}</code>`],
    ['State', stateCell(record, nowMs)],
    ['Asked', timeAgo(record.requested_at, nowMs)],
    ['Decided', at === null ? null : html`${timeAgo(at, nowMs)} by ${foreignText(nameOf(by) ?? by ?? '')}`],
  ];
  return html`<article class="panel" data-key="${record.id} ${record.state}">
    <p class="mono asked">${foreignText(record.summary)}</p>
    <p>${OUTCOMES[record.state]}</p>
    ${definitionList(facts)}
  </article>`;
}

function nothing(): Html {
  return emptyState({
    title: 'No request needed an approval yet',
    next: 'A connector’s spec says which of its operations need one.',
  });
}

function nothingWaits(): Html {
  return emptyState({
    title: 'No request waits for you',
    next: 'New requests appear here by themselves. In a terminal:',
    command: 'svc approvals',
  });
}

function table({ approvals, nowMs }: ApprovalsView): Html {
  return dataTable<ApprovalRecord>({
    caption: 'Requests to approve',
    rows: approvals.items,
    key: ({ id, state: its }) => `${id} ${its}`,
    columns: [
      { title: 'Asked', cell: ({ requested_at: asked }) => timeAgo(asked, nowMs) },
      {
        title: 'Request',
        cell: (approval) =>
          html`<a class="mono" href="/approvals/${approval.id}">${foreignText(approval.summary)}</a>
            <span class="sub">${foreignText(approvalTarget(approval))}</span>`,
      },
      {
        title: 'Session',
        cell: ({ session_id: session, session_name: name }) => sessionWords({ session, name, machine: null }),
      },
      { title: 'State', cell: (approval) => stateCell(approval, nowMs) },
      {
        title: 'Decide',
        isActions: true,
        cell: (approval) => (approval.state === 'pending' ? decision(approval) : ''),
      },
    ],
  });
}

function stateCell(approval: ApprovalRecord, nowMs: number): Html {
  const { kind, word } = STATES[approval.state];
  const until =
    approval.state === 'pending' ? approval.expires_at : approval.state === 'approved' ? approval.valid_until : null;
  return html`${badge(kind, word)} ${until === null ? '' : html`<span class="sub">ends ${timeAgo(until, nowMs)}</span>`}`;
}

function decision(approval: ApprovalRecord): Html {
  const what = `${approvalTarget(approval)}, ${approval.summary}`;
  return html`<form method="post" action="/approvals/${approval.id}" class="actions" data-island="decide">
    ${
      approval.may_approve
        ? html`<button class="compact primary" name="decision" value="approve">
            Approve<span class="hidden-but-read"> ${what}</span>
          </button>`
        : ''
    }
    <button class="compact danger" name="decision" value="deny">
      Deny<span class="hidden-but-read"> ${what}</span>
    </button>
  </form>`;
}
