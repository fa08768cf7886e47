import { html } from 'hono/html';
import type { AuditVerification, StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { RequestCounts } from '../../services/audit/request_counts.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { MAX_VIEW_NAME, type SavedView } from '../../services/audit/saved_views.ts';
import { alert, flash } from '../components/alert.ts';
import { foreignText } from '../components/foreign_text.ts';
import { emptyState } from '../components/empty_state.ts';
import {
  type Choice,
  type FormState,
  formRefusal,
  selectField,
  textField,
  timeField,
} from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager, pathWith } from '../components/pager.ts';
import { eventTable } from './event_table.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { requestChart } from './request_chart.ts';
import { counted } from '../../../shared/model/sentence.ts';

export const AUDIT_FILTERS = [
  'type',
  'host',
  'session',
  'q',
  'method',
  'status',
  'path',
  'connector',
  'person',
  'since',
  'until',
] as const;

interface AuditView {
  /** What the person keeps. */
  readonly views: readonly SavedView[];
  readonly done: string | undefined;
  /** Whose events can be chosen; empty if there is only one person. */
  readonly people: readonly Choice[];
  readonly form: FormState;
  /** Null if a filter is invalid. */
  readonly events: ListPage<StoredAuditEvent> | null;
  readonly counts: RequestCounts | null;
  readonly cursor: string | undefined;
  /** The filters have to read each event, so without a beginning a week was searched. */
  readonly readsAll: boolean;
  readonly nameOf: NameOf;
  readonly nowMs: number;
}

/** The whole log as a file that `svc audit verify --file` checks. */
export const PROOF_PATH = '/audit/export?format=proof';

/** What is typed is a part of the host, unless it says itself what may be around it. */
export function hostFilter(typed: string | undefined): string | undefined {
  if (typed === undefined || typed === '') return undefined;
  return typed.includes('*') ? typed : `*${typed}*`;
}

const TYPES = [
  { value: '', title: 'Everything' },
  { value: 'sandbox.proxy.,connector.proxy.', title: 'Requests of agents' },
  { value: 'sandbox.proxy.rejected,sandbox.proxy.trust_denied,connector.proxy.rejected', title: 'Refused requests' },
  { value: 'sandbox.proxy.binding_injected,connector.proxy.proxied', title: 'Credentials added' },
  { value: 'sandbox.proxy.passthrough', title: 'Passed unchanged' },
  { value: 'sandbox.proxy.tunnelled', title: 'Connections carried unread' },
  { value: 'connector.approval.', title: 'Approvals' },
  { value: 'mcp.', title: 'MCP servers and tools' },
  { value: 'control.credential.released', title: 'Credentials sent sealed to a sidecar' },
  { value: 'sandbox.proxy.credential_unsealed', title: 'Credentials exposed' },
  { value: 'control.', title: 'Changes and sign-ins' },
];

/** The audit log: a chart, filters, and the events, which update live on the first page if no end time is set. */
export function auditPage(view: AuditView): Page {
  const { form, events, counts } = view;
  const isLive = events !== null && view.cursor === undefined && (form.values['until'] ?? '') === '';
  const content = html`${pageHeader({
    title: 'Audit',
    lead: 'Every decision about a request and every change, without secrets. Each event is chained to the previous one.',
  })}
  ${flash(view.done)} ${formRefusal(form, AUDIT_FILTERS)}
  ${
    counts === null
      ? ''
      : html`<section class="panel" id="chart" aria-labelledby="chart-title">
          <div class="panel-head">
            <h2 id="chart-title">Requests over time</h2>
            ${hasTime(form) ? html`<a href="${pathWith('/audit', { ...form.values, since: '', until: '' })}">The last day</a>` : ''}
          </div>
          ${requestChart(counts, (since, until) => pathWith('/audit', { ...form.values, since, until }))}
        </section>`
  }
  ${filterForm(view)} ${savedViews(view)} ${events === null ? '' : list(view, events, isLive)}`;
  return layout('Audit', content);
}

function hasTime({ values }: FormState): boolean {
  return [values['since'], values['until']].some((time) => (time ?? '') !== '');
}

const HOUR_MS = 3_600_000;

/** Ready questions, as links. */
function presets({ values }: FormState, nowMs: number): Html {
  const ago = (ms: number) => new Date(nowMs - ms).toISOString().slice(0, 19);
  const period = (title: string, ms: number) => ({
    title,
    isToday: false,
    query: { ...values, since: ago(ms), until: '' },
  });
  const refused = TYPES.find(({ title }) => title === 'Refused requests')?.value ?? '';
  const all = [
    period('Last hour', HOUR_MS),
    period('Last day', 24 * HOUR_MS),
    period('Last week', 168 * HOUR_MS),
    { title: 'Refused today', query: { type: refused, since: `${ago(0).slice(0, 10)}T00:00:00` }, isToday: true },
    { title: 'Errors of upstreams', query: { status: '5xx', since: ago(24 * HOUR_MS) }, isToday: false },
  ];
  return html`<nav class="actions" aria-label="Ready filters">
    ${all.map(
      ({ title, query, isToday }) =>
        html`<a class="button compact" href="${pathWith('/audit', query)}" ${isToday ? 'data-today' : ''}>${title}</a>`,
    )}
  </nav>`;
}

/** The filters that a view keeps: what is asked, not about which time. */
export function viewQuery(values: Readonly<Record<string, string>>): string {
  const kept = AUDIT_FILTERS.filter((name) => name !== 'since' && name !== 'until' && (values[name] ?? '') !== '');
  return new URLSearchParams(kept.map((name): [string, string] => [name, values[name] ?? ''])).toString();
}

/** The person's views as links, and a form that keeps or forgets the one that is shown. */
function savedViews({ views, form, events }: AuditView): Html | string {
  const query = viewQuery(form.values);
  const shown = views.find((view) => view.query === query);
  const maySave = query !== '' && shown === undefined && events !== null;
  if (views.length === 0 && !maySave) return '';
  return html`<section class="panel stack" aria-labelledby="views-title">
    <h2 id="views-title">Saved views</h2>
    ${
      views.length === 0
        ? ''
        : html`<ul class="plain actions">
            ${views.map(
              ({ name, query: of }) =>
                html`<li>
                  <a class="button compact" href="/audit?${of}" ${of === query ? html`aria-current="true"` : ''}
                    >${foreignText(name)}</a
                  >
                </li>`,
            )}
          </ul>`
    }
    ${shown === undefined ? '' : forgetForm(shown)} ${maySave ? saveForm(form) : ''}
    <p class="quiet small">A view has no times, and only you see it.</p>
  </section>`;
}

function saveForm({ values }: FormState): Html {
  return html`<form method="post" action="/audit/views" class="one-line">
    ${AUDIT_FILTERS.map((name) => html`<input type="hidden" name="${name}" value="${values[name] ?? ''}" />`)}
    ${textField(
      { values: {}, problems: [], refusal: null },
      {
        name: 'name',
        label: 'Save these filters as a view',
        maxLength: MAX_VIEW_NAME,
        isRequired: true,
      },
    )}
    <button>Save</button>
  </form>`;
}

function forgetForm({ name }: SavedView): Html {
  return html`<form method="post" action="/audit/views/forget" class="actions">
    <input type="hidden" name="name" value="${name}" />
    <button class="compact">Forget the view ${foreignText(name)}</button>
  </form>`;
}

const ANYBODY: Choice = { value: '', title: 'Anybody' };
const METHODS = ['', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const MORE_FILTERS = ['method', 'status', 'path', 'connector'] as const;

function filterForm({ form, people, nowMs, nameOf }: AuditView): Html {
  const typed = form.values['type'] ?? '';
  const known = TYPES.some(({ value }) => value === typed);
  const choices = known ? TYPES : [...TYPES, { value: typed, title: typed }];
  const person = form.values['person'] ?? '';
  const isListed = person === '' || people.some(({ value }) => value === person);
  const persons = isListed ? people : [...people, { value: person, title: nameOf(person) || person }];
  const isMore = MORE_FILTERS.some((name) => (form.values[name] ?? '') !== '');
  const methods = METHODS.map((value) => ({ value, title: value === '' ? 'Any' : value }));
  return html`<form method="get" action="/audit" class="panel" role="search" aria-label="Events">
    ${presets(form, nowMs)}
    <div class="filters">
      ${selectField(form, { name: 'type', label: 'What', choices })}
      ${textField(form, { name: 'host', label: 'Host, or a part of it', placeholder: 'github', isMono: true })}
      ${textField(form, { name: 'q', label: 'Text', placeholder: 'anywhere in the event' })}
      ${persons.length === 0 ? '' : selectField(form, { name: 'person', label: 'Person', choices: [ANYBODY, ...persons] })}
      ${textField(form, { name: 'session', label: 'Session', isMono: true })}
      ${timeField(form, { name: 'since', label: 'From (UTC)' })}
      ${timeField(form, { name: 'until', label: 'Until (UTC)' })}
    </div>
    <details class="more" ${isMore ? 'open' : ''}>
      <summary>Method, status, path, connector</summary>
      <div class="filters">
        ${selectField(form, { name: 'method', label: 'Method', choices: methods })}
        ${textField(form, { name: 'status', label: 'Status', placeholder: '404 or 5xx', isMono: true })}
        ${textField(form, { name: 'path', label: 'Part of the path', placeholder: '/repos/', isMono: true })}
        ${textField(form, { name: 'connector', label: 'Connector', placeholder: 'publisher/name', isMono: true })}
      </div>
    </details>
    <div class="actions">
      <button class="primary">Show</button>
      <a class="button" href="/audit">Clear</a>
    </div>
  </form>`;
}

function list(
  { form, cursor, nowMs, readsAll, nameOf }: AuditView,
  events: ListPage<StoredAuditEvent>,
  isLive: boolean,
): Html {
  const { type = '', since: _, until: __, ...filters } = form.values;
  const filtered = Object.values(filters).some((value) => value !== '') ? html`data-filtered` : '';
  const live = isLive ? html`data-island="live-list" data-events="${type}" ${filtered} data-also="chart"` : '';
  const here = pathWith('/audit', { ...form.values, cursor });
  return html`<section class="stack" aria-labelledby="events-title">
    <div class="panel-head">
      <h2 id="events-title">Events</h2>
      <span class="live"><span data-live-of="events" role="status">As of now</span> <a href="${here}">Reload</a></span>
      <span class="small">
        Export
        <a href="${pathWith('/audit/export', { ...form.values, format: 'csv' })}" download>CSV</a> ·
        <a href="${pathWith('/audit/export', { ...form.values, format: 'jsonl' })}" download>JSON lines</a> ·
        <a href="${PROOF_PATH}" download>Everything with proof</a>
      </span>
    </div>
    ${readsAll && (form.values['since'] ?? '') === '' ? html`<p class="quiet small">Searched: the last week. Choose From for more.</p>` : ''}
    <div class="panel flush" id="events" ${live}>
      ${events.items.length === 0 ? nothingFound(form) : eventTable('Audit events', events.items, nowMs, nameOf)}
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
  const content = html`${pageHeader({ title: 'Proof of the audit log', lead: 'Each event carries the hash of the one before it, so that a change shows.' })}
    ${
      broken === null
        ? alert(
            'good',
            html`<p>
              <strong>Verified.</strong> ${counted(events, 'event')} in ${counted(chains.length, 'chain')}, each after
              the one before it.
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
      <code data-command>svc audit verify --against FILE</code>.
    </p>
    <p class="quiet">
      <a href="${PROOF_PATH}" download>Everything with proof</a> is one file with every event and a signed statement of
      the chains. Anybody who knows the control plane’s key checks it without the control plane:
      <code data-command>svc audit verify --file audit-with-proof.ndjson</code>.
    </p> `;
  return layout('Proof of the audit log', content, 'narrow');
}
