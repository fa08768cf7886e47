import { html } from 'hono/html';
import type { AuditSinkRecord } from '../../../shared/wire/audit_sinks.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The receivers of the enterprise's audit events, and how sending goes. */
export function sinksPage(sinks: readonly AuditSinkRecord[]): Page {
  const content = html`${pageHeader({
      title: 'Audit sinks',
      lead: 'A sink sends each event to your log system, in order and at least once.',
    })}
    <div class="panel flush">${sinks.length === 0 ? noSinks() : table(sinks)}</div>
    <p class="quiet small">Add, enable and remove sinks, and send refused events again, at the command line:</p>
    ${codeBlock('svc audit sink add NAME https://siem.example.com/in')} ${codeBlock('svc audit sink --help')}`;
  return layout('Audit sinks', content);
}

function noSinks(): Html {
  return emptyState({
    title: 'No sink yet',
    next: 'Events stay in this log alone. Send them to a webhook, syslog, a bucket or a collector.',
  });
}

function table(rows: readonly AuditSinkRecord[]): Html {
  return dataTable<AuditSinkRecord>({
    caption: 'Audit sinks',
    rows,
    columns: [
      { title: 'Name', cell: ({ name }) => html`<strong>${foreignText(name)}</strong>` },
      { title: 'Kind', cell: ({ kind }) => html`<span class="tag">${kind}</span>` },
      { title: 'Host', cell: ({ host }) => foreignText(host) },
      { title: 'State', cell: stateOf },
      { title: 'Accepted', cell: ({ delivered_at: at }) => (at === null ? 'never' : writtenTime(at)) },
      { title: 'Refused for good', cell: ({ dead_letters: dead }) => String(dead) },
    ],
  });
}

const REASONS = {
  failing: 'every try of three days failed',
  gone: 'the receiver wants no more',
  dead_letters: 'the receiver refused too many events',
} as const;

function stateOf({ disabled_reason: reason, failures, problem, behind }: AuditSinkRecord): Html {
  const last = problem === null ? '' : html` <code>${foreignText(problem)}</code>`;
  if (reason !== null) return html`${badge('bad', 'disabled')} ${REASONS[reason]}${last}`;
  if (failures > 0) return html`${badge('warn', 'failing')}${last}`;
  return badge('good', behind ? 'sending' : 'up to date');
}
