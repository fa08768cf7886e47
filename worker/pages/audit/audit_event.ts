import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { EventStanding } from '../../services/audit/event_standing.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { storySentences } from './audit_story.ts';
import { dataWords } from './data_words.ts';
import { decisionSentences, eventSubject, eventWords } from './audit_words.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import { sessionPath, wordBadge } from './event_table.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** One event in words: what was decided, why, and its place in its chain. */
interface EventView {
  readonly standing: EventStanding;
  readonly nameOf: NameOf;
  readonly nowMs: number;
}

export function auditEventPage(event: StoredAuditEvent, { standing, nameOf, nowMs }: EventView): Page {
  const { word } = eventWords(event);
  const sentences = [...storySentences(event, nameOf), ...decisionSentences(event)];
  const content = html`${pageHeader({
      title: html`${word}`,
      lead: html`<span class="mono">${foreignText(eventSubject(event))}</span>`,
      above: { path: '/audit', title: 'Audit' },
      actions: wordBadge(event),
    })}
    ${sentences.length === 0 ? '' : why(sentences)}
    <section class="panel" aria-labelledby="facts-title">
      <h2 id="facts-title">Recorded</h2>
      ${definitionList([
        ['Time', html`${writtenTime(event.time)} <span class="quiet">(${timeAgo(event.time, nowMs)})</span>`],
        ['Type', html`<code>${event.type}</code>`],
        ['Session', event.session_id === null ? null : sessionLink(event.session_id, nameOf)],
        ['Sidecar', event.sidecar_id === null ? null : namedId(event.sidecar_id, nameOf)],
        ['Who', event.actor === null ? null : namedId(event.actor, nameOf)],
        ...Object.entries(event.data).map(([key, value]) => [dataWords(key), dataValue(value, nameOf)] as const),
      ])}
    </section>
    <section class="panel" aria-labelledby="chain-title">
      <h2 id="chain-title">Place in the chain</h2>
      ${standingWords(standing)}
      ${definitionList([
        ['Event', html`<code>${event.id}</code>`],
        ['Chain of', html`${namedId(event.writer, nameOf)}, number ${event.sequence}`],
        ['Hash', html`<code>${event.hash}</code>`],
        [
          'After',
          /^0+$/.test(event.previous_hash) ? 'nothing: it is the first' : html`<code>${event.previous_hash}</code>`,
        ],
      ])}
      <div class="actions"><a class="button" href="/audit/verify">Verify all of the log</a></div>
    </section>
    ${codeBlock(event.session_id === null ? 'svc audit list' : `svc audit list --session ${event.session_id}`)}`;
  return layout(word, content, 'narrow');
}

function why(sentences: readonly string[]): Html {
  return html`<section class="panel" aria-labelledby="why-title">
    <h2 id="why-title">Why</h2>
    <ol class="reasons">
      ${sentences.map((sentence) => html`<li>${foreignText(sentence)}</li>`)}
    </ol>
  </section>`;
}

/** What is wrong at a place of a chain. */
const PROBLEMS: { readonly [P in NonNullable<EventStanding['problem']>]: string } = {
  missing_event: 'An event next to it is missing.',
  wrong_previous_hash: 'It does not match the event next to it.',
  wrong_hash: 'The record differs from what was hashed.',
  wrong_head: 'It does not match the sealed end of its chain.',
  wrong_beginning: 'The sealed record of removed events before it was changed.',
  wrong_enterprise: 'It, or its chain, was moved to another enterprise.',
  wrong_writers: 'Its chain was not begun by the control plane.',
  missing_chain: 'Its chain is missing.',
};

function standingWords({ problem, isNewest }: EventStanding): Html {
  if (problem !== null) return html`<p>${badge('bad', 'Broken here')} ${PROBLEMS[problem]}</p>`;
  const after = isNewest
    ? 'It is the newest event, as the sealed end of its chain says.'
    : 'The event after it refers to it.';
  return html`<p>
    ${badge('good', 'Verified here')} The record matches its hash, and it refers to the event before it. ${after}
  </p>`;
}

function sessionLink(session: string, nameOf: NameOf): Html {
  const name = nameOf(session);
  return html`${name === null ? '' : html`${foreignText(name)} `}<a class="mono" href="${sessionPath(session)}"
      >${session}</a
    >`;
}

const PAGES: Readonly<Record<string, string>> = { bnd: '/bindings', con: '/connectors', mcp: '/mcp-servers' };

/** An id, with the name of the thing and a link to its page if the reader sees it. */
export function namedId(id: string, nameOf: NameOf): Html {
  const name = nameOf(id);
  if (name === null) return html`<code>${foreignText(id)}</code>`;
  const page = PAGES[id.slice(0, 3)];
  const shown = page === undefined ? foreignText(name) : html`<a href="${page}/${id}">${foreignText(name)}</a>`;
  return html`${shown} <code>${id}</code>`;
}

function dataValue(value: unknown, nameOf: NameOf): Html {
  if (typeof value === 'string' && nameOf(value) !== null) return namedId(value, nameOf);
  return html`<span class="mono">${foreignText(typeof value === 'string' ? value : JSON.stringify(value))}</span>`;
}
