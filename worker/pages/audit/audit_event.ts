import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { EventStanding } from '../../services/audit/event_standing.ts';
import { storySentences } from './audit_story.ts';
import { decisionSentences, eventSubject, eventWords } from './audit_words.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { wordBadge } from './event_table.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** One event in words: what was decided, why, and where it stands in its chain. */
export function auditEventPage(event: StoredAuditEvent, standing: EventStanding, nowMs: number): Page {
  const { word } = eventWords(event);
  const sentences = [...storySentences(event), ...decisionSentences(event)];
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
        ['Time', html`${exactTime(event.time)} <span class="quiet">(${timeAgo(event.time, nowMs)})</span>`],
        ['Type', html`<code>${event.type}</code>`],
        ['Session', event.session_id === null ? null : sessionLink(event.session_id)],
        ['Sidecar', event.sidecar_id === null ? null : html`<code>${event.sidecar_id}</code>`],
        ['Who', event.actor === null ? null : html`<code>${event.actor}</code>`],
        ...Object.entries(event.data).map(([key, value]) => [key, dataValue(value)] as const),
      ])}
    </section>
    <section class="panel" aria-labelledby="chain-title">
      <h2 id="chain-title">Place in the chain</h2>
      ${standingWords(standing)}
      ${definitionList([
        ['Event', html`<code>${event.id}</code>`],
        ['Chain of', html`<code>${event.writer}</code>, number ${event.sequence}`],
        ['Hash', html`<code>${event.hash}</code>`],
        ['After', html`<code>${event.previous_hash}</code>`],
      ])}
      <div class="actions"><a class="button" href="/audit/verify">Verify all of the log</a></div>
    </section>
    ${codeBlock(`svc audit list --session ${event.session_id ?? ''}`.trim())}`;
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
  missing_event: 'An event beside it is not there any more.',
  wrong_previous_hash: 'It does not fit the event beside it.',
  wrong_hash: 'What is recorded here is not what was hashed when it was recorded.',
  wrong_head: 'It is not what the sealed end of its chain says.',
  wrong_beginning: 'The sealed note of what was removed before it was changed.',
  wrong_enterprise: 'It, or its chain, was given to another enterprise.',
  wrong_writers: 'Its chain is not among those that the control plane had begun.',
  missing_chain: 'Its chain is not there any more.',
};

function standingWords({ problem, isNewest }: EventStanding): Html {
  if (problem !== null) return html`<p>${badge('bad', 'Broken here')} ${PROBLEMS[problem]}</p>`;
  const after = isNewest
    ? 'It is the newest of its chain, as the sealed end of the chain says.'
    : 'The event after it names it.';
  return html`<p>
    ${badge('good', 'Verified here')} What is recorded fits its hash, and it names the event before it. ${after}
  </p>`;
}

function sessionLink(session: string): Html {
  return html`<a class="mono" href="${pathWith('/audit', { session })}">${session}</a>`;
}

function dataValue(value: unknown): Html {
  return html`<span class="mono">${foreignText(typeof value === 'string' ? value : JSON.stringify(value))}</span>`;
}
