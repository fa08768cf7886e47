import { html } from 'hono/html';
import type { AuditVerification, StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { RequestCounts } from '../../services/audit/request_counts.ts';
import { alert } from '../components/alert.ts';
import { emptyState } from '../components/empty_state.ts';
import { type FormState, formRefusal, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager, pathWith } from '../components/pager.ts';
import { eventTable } from './event_table.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { requestChart } from './request_chart.ts';

export const AUDIT_FILTERS = ['type', 'host', 'session', 'connector', 'since', 'until'] as const;

interface AuditView {
  readonly form: FormState;
  /** Null if a filter is invalid. */
  readonly events: ListPage<StoredAuditEvent> | null;
  readonly counts: RequestCounts | null;
  readonly cursor: string | undefined;
  readonly nowMs: number;
}

const TYPES = [
  { value: '', title: 'Everything' },
  { value: 'sandbox.proxy.,connector.proxy.', title: 'Requests of agents' },
  { value: 'sandbox.proxy.rejected,sandbox.proxy.trust_denied,connector.proxy.rejected', title: 'Refused requests' },
  { value: 'sandbox.proxy.binding_injected,connector.proxy.proxied', title: 'Credentials added' },
  { value: 'sandbox.proxy.tunnelled', title: 'Connections carried unread' },
  { value: 'connector.approval.', title: 'Approvals' },
  { value: 'mcp.', title: 'MCP servers and tools' },
  { value: 'control.credential.released', title: 'Credentials released' },
  { value: 'control.', title: 'Changes and sign-ins' },
];

/** The audit log: a chart, filters, and the events, which update live on the first page if no end time is set. */
export function auditPage(view: AuditView): Page {
  const { form, events, counts } = view;
  const isLive = events !== null && view.cursor === undefined && (form.values['until'] ?? '') === '';
  const content = html`${pageHeader({
    title: 'Audit',
    lead: 'Every decision about a request and every change, without secrets. Each event is chained to the previous one.',
    actions: html`<a class="button" href="/audit/sinks">Sinks</a>
      <a class="button" href="/audit/verify">Verify the chain</a>`,
  })}
  ${formRefusal(form, AUDIT_FILTERS)}
  ${
    counts === null
      ? ''
      : html`<section class="panel" aria-labelledby="chart-title">
          <div class="panel-head">
            <h2 id="chart-title">Requests over time</h2>
            ${hasTime(form) ? html`<a href="${pathWith('/audit', { ...form.values, since: '', until: '' })}">The last day</a>` : ''}
          </div>
          ${requestChart(counts, (since, until) => pathWith('/audit', { ...form.values, since, until }))}
        </section>`
  }
  ${filterForm(form)} ${events === null ? '' : list(view, events, isLive)}`;
  return layout('Audit', content);
}

function hasTime({ values }: FormState): boolean {
  return [values['since'], values['until']].some((time) => (time ?? '') !== '');
}

function filterForm(form: FormState): Html {
  const typed = form.values['type'] ?? '';
  const known = TYPES.some(({ value }) => value === typed);
  const choices = known ? TYPES : [...TYPES, { value: typed, title: typed }];
  const timeHint = '2026-01-02T03:04:05Z';
  return html`<form method="get" action="/audit" class="panel" role="search" aria-label="Events">
    <div class="filters">
      ${selectField(form, { name: 'type', label: 'What', choices })}
      ${textField(form, { name: 'host', label: 'Host', placeholder: 'api.github.com', isMono: true })}
      ${textField(form, { name: 'session', label: 'Session', isMono: true })}
      ${textField(form, { name: 'connector', label: 'Connector', placeholder: 'publisher/name', isMono: true })}
      ${textField(form, { name: 'since', label: 'From', placeholder: timeHint, isMono: true })}
      ${textField(form, { name: 'until', label: 'Until', placeholder: timeHint, isMono: true })}
    </div>
    <div class="actions">
      <button class="primary">Show</button>
      <a class="button" href="/audit">Clear</a>
    </div>
  </form>`;
}

function list({ form, cursor, nowMs }: AuditView, events: ListPage<StoredAuditEvent>, isLive: boolean): Html {
  const { type, host, session, connector } = form.values;
  const stream = pathWith('/v1/audit-events/stream', { type, host, session, connector });
  const live = isLive ? html`data-island="live-list" data-stream="${stream}"` : '';
  const here = pathWith('/audit', { ...form.values, cursor });
  return html`<section class="stack" aria-labelledby="events-title">
    <div class="panel-head">
      <h2 id="events-title">Events</h2>
      <span class="live"><span data-live-of="events" role="status">As of now</span> <a href="${here}">Reload</a></span>
    </div>
    <div class="panel flush" id="events" ${live}>
      ${events.items.length === 0 ? nothingFound(form) : eventTable('Audit events', events.items, nowMs)}
    </div>
    ${pager('/audit', { ...form.values, cursor }, events.next_cursor)}
  </section>`;
}

function nothingFound({ values }: FormState): Html {
  const isFiltered = Object.values(values).some((value) => value !== '');
  if (isFiltered) {
    return emptyState({
      title: 'No event matches',
      next: 'Remove a filter, or choose a longer period.',
      action: html`<a class="button" href="/audit">Show everything</a>`,
    });
  }
  const next = 'Requests of agents appear here as they are decided.';
  return emptyState({ title: 'Nothing is recorded yet', next, command: 'svc run -- curl https://api.github.com/user' });
}

/** Whether the log verifies. */
export function verificationPage(verified: AuditVerification): Page {
  const { first_break: broken, events, chains, removed } = verified;
  const content = html`${pageHeader({ title: 'The chain of the audit log', above: { path: '/audit', title: 'Audit' } })}
    ${
      broken === null
        ? alert(
            'good',
            html`<p>
              <strong>Verified.</strong> ${events} events in ${chains.length} chains, each after the one before it.
            </p>`,
          )
        : alert(
            'bad',
            html`<p>
              <strong>Broken.</strong> The chain of <code>${broken.writer}</code> is broken at event ${broken.sequence}
              (${broken.reason.replaceAll('_', ' ')}): an event was changed, added or removed there.
            </p>`,
          )
    }
    ${removed === 0 ? '' : html`<p class="quiet">${removed} older events were removed, as a sealed record shows.</p>`}
    <p class="quiet">
      The seals show whether a chain or an event is missing. Only data outside of the database shows whether all of it
      was restored to an older copy: the sidecars remember their chains, and copies of
      <a href="/v1/audit-events/heads">the signed heads</a> are compared by
      <code>svc audit verify --against FILE</code>.
    </p>
    <div class="actions"><a class="button" href="/audit">Back to the audit log</a></div>`;
  return layout('Verify the audit log', content, 'narrow');
}
