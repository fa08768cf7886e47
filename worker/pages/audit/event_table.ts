import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import { eventOutcome, eventSubject, eventWords } from './audit_words.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { foreignText } from '../components/foreign_text.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';

/** Events, newest first, each with a link to its explanation. */
export function eventTable(caption: string, events: readonly StoredAuditEvent[], nowMs: number, nameOf: NameOf): Html {
  return dataTable<StoredAuditEvent>({
    caption,
    rows: events,
    key: ({ id }) => id,
    columns: [
      { title: 'Time', cell: ({ time }) => timeAgo(time, nowMs) },
      { title: 'Decision', cell: (event) => wordBadge(event) },
      { title: 'What', cell: (event) => subjectCell(event, nameOf) },
      {
        title: 'Outcome',
        cell: outcomeCell,
      },
      { title: 'Who', cell: (event) => whoWords(event, nameOf) },
      { title: 'Why', isActions: true, cell: (event) => whyLink(event) },
    ],
  });
}

/** An id has a name where the reader may see it. */
function subjectCell(event: StoredAuditEvent, nameOf: NameOf): Html {
  const subject = eventSubject(event);
  const name = nameOf(subject);
  if (name === null) return html`<span class="mono">${foreignText(subject)}</span>`;
  return html`<span title="${subject}">${foreignText(name)}</span>`;
}

/** A reason in words; its code, which can be searched for, is the title. */
export function outcomeCell(event: Pick<StoredAuditEvent, 'data'>): Html | string {
  const outcome = eventOutcome(event);
  if (outcome === '') return '';
  return html`<span class="small" title="${outcome}">${foreignText(outcome.replaceAll('_', ' '))}</span>`;
}

/** Who acted: a person, or a session on a machine. The ids are at hand as titles, and on the event's page. */
function whoWords(
  { session_id: session, sidecar_id: sidecar, actor }: StoredAuditEvent,
  nameOf: NameOf,
): Html | string {
  if (session !== null) {
    return html`<a class="nowrap" href="${sessionPath(session)}" title="${session}"
        >${nameOf(session) === null ? html`<span class="mono">${shortId(session)}</span>` : foreignText(nameOf(session) ?? '')}</a
      >${sidecar === null ? '' : html`<span class="sub" title="${sidecar}">${foreignText(nameOf(sidecar) ?? shortId(sidecar))}</span>`}`;
  }
  const id = actor ?? sidecar;
  return id === null ? '' : html`<span class="who" title="${id}">${foreignText(nameOf(id) ?? shortId(id))}</span>`;
}

/** The page of a session. */
export function sessionPath(session: string): string {
  return `/audit/sessions/${encodeURIComponent(session)}`;
}

/** The end of an id, which differs most: its beginning is a time. */
function shortId(id: string): string {
  return id.length > 14 ? `…${id.slice(-6)}` : id;
}

export function wordBadge(event: Pick<StoredAuditEvent, 'type' | 'data'>): Html {
  const { kind, word } = eventWords(event);
  return badge(kind, word);
}

function whyLink({ id, type, time }: StoredAuditEvent): Html {
  return html`<a class="nowrap" href="/audit/${id}">Why<span class="hidden-but-read"> ${type} at ${time}</span></a>`;
}
