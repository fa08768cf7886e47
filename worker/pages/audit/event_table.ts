import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { eventOutcome, eventSubject, eventWords } from './audit_words.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

/** Events, newest first, each with a link to its explanation. */
export function eventTable(caption: string, events: readonly StoredAuditEvent[], nowMs: number): Html {
  return dataTable<StoredAuditEvent>({
    caption,
    rows: events,
    key: ({ id }) => id,
    columns: [
      { title: 'Time', cell: ({ time }) => timeAgo(time, nowMs) },
      { title: 'Decision', cell: (event) => wordBadge(event) },
      { title: 'What', cell: (event) => html`<span class="mono">${foreignText(eventSubject(event))}</span>` },
      {
        title: 'Outcome',
        cell: (event) => (eventOutcome(event) === '' ? '' : html`<code>${foreignText(eventOutcome(event))}</code>`),
      },
      { title: 'Why', isActions: true, cell: (event) => whyLink(event) },
    ],
  });
}

export function wordBadge(event: Pick<StoredAuditEvent, 'type' | 'data'>): Html {
  const { kind, word } = eventWords(event);
  return badge(kind, word);
}

function whyLink({ id, type, time }: StoredAuditEvent): Html {
  return html`<a class="nowrap" href="/audit/${id}">Why<span class="hidden-but-read"> ${type} at ${time}</span></a>`;
}
