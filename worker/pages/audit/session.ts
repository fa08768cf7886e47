import { html } from 'hono/html';
import type { SessionStep, SessionUse } from '../../../shared/report/session_summary.ts';
import type { SessionDetails } from '../../services/audit/session_details.ts';
import { alert } from '../components/alert.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { relativeTime, timeAgo, writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { eventSubject } from './audit_words.ts';
import { outcomeCell, wordBadge } from './event_table.ts';
import { SESSIONS_PATH, stepsPanel } from './sessions.ts';

/** What a session did: the credentials that it used, the hosts that it reached, and its decisions in their order. */
export function sessionPage(session: SessionDetails, nowMs: number): Page {
  const { id, name, summary, isCut, machines } = session;
  const title = name ?? 'A session';
  const content = html`${pageHeader({
      title: foreignText(title),
      lead: html`<span class="mono">${foreignText(id)}</span>`,
      above: { path: SESSIONS_PATH, title: 'Sessions' },
      actions: html`<a class="button" href="${pathWith('/audit', { session: id })}">Show its events</a>`,
    })}
    ${machines.length > 1 ? alert('warn', SEVERAL_MACHINES) : ''}
    ${isCut ? alert('info', html`<p>The session is long: this page is about its newest 500 events.</p>`) : ''}
    <section class="panel" aria-labelledby="facts-title">
      <h2 id="facts-title">Who and when</h2>
      ${facts(session, nowMs)}
    </section>
    ${stepsPanel(session.steps)}
    ${usesPanel('credentials', 'Credentials it used', 'No credential was added to its requests.', summary.credentials, nowMs)}
    ${usesPanel('hosts', 'Hosts', 'It sent no request.', summary.hosts, nowMs)} ${timeline(summary.steps)}`;
  return layout(title, content);
}

const SEVERAL_MACHINES =
  'Several machines reported events of this session. A machine names its sessions itself, so this page may be about several of them: the machine of each event is on its own page.';

function facts({ machines, folder, firstAt, lastAt, summary }: SessionDetails, nowMs: number): Html {
  const { added, passed, refused } = summary.counts;
  const lasted = relativeTime(firstAt, Date.parse(lastAt)).replace(/ ago$/, '');
  return definitionList([
    ...machines.flatMap(({ person, ...machine }): [string, Html | null][] => [
      ['Machine', named(machine)],
      ['For', named(person)],
    ]),
    ['Folder', folder === null ? null : html`<code>${foreignText(folder)}</code>`],
    ['First event', html`${writtenTime(firstAt)} <span class="quiet">(${timeAgo(firstAt, nowMs)})</span>`],
    [
      'Latest event',
      html`${writtenTime(lastAt)}${lasted === 'now' ? '' : html` <span class="quiet">(${lasted} later)</span>`}`,
    ],
    ['Requests', `${added} with a credential, ${passed} passed unchanged, ${refused} refused`],
  ]);
}

function named(thing: SessionDetails['machines'][number]['person']): Html | null {
  if (thing === null) return null;
  return html`${thing.name === null ? '' : html`${foreignText(thing.name)} `}<code>${thing.id}</code>`;
}

const DECISIONS: Readonly<Record<string, string>> = {
  added: 'credential added',
  passed: 'passed unchanged',
  refused: 'refused',
};

const MOST_USES = 50;
const MOST_ON = 5;

function usesPanel(id: string, title: string, none: string, uses: readonly SessionUse[], nowMs: number): Html {
  const more = uses.length - MOST_USES;
  const table = dataTable<SessionUse>({
    caption: title,
    rows: uses.slice(0, MOST_USES),
    columns: [
      { title: id === 'hosts' ? 'Host' : 'Credential', cell: ({ name }) => useName(id, name) },
      {
        title: id === 'hosts' ? 'Decisions' : 'Sent to',
        cell: ({ on }) => onWords(on.map((each) => DECISIONS[each] ?? each)),
      },
      { title: 'Requests', cell: ({ count }) => html`<span class="number">${count}</span>` },
      { title: 'Latest', cell: ({ lastAt }) => timeAgo(lastAt, nowMs) },
    ],
  });
  return html`<section class="panel flush" aria-labelledby="${id}-title">
    <div class="panel-head"><h2 id="${id}-title">${title}</h2></div>
    ${uses.length === 0 ? html`<p class="quiet padded">${none}</p>` : table}
    ${more > 0 ? html`<p class="quiet padded">and ${more} more</p>` : ''}
  </section>`;
}

function useName(id: string, name: string): Html {
  const shown = html`<code>${foreignText(name)}</code>`;
  return id === 'hosts' ? html`<a href="${pathWith('/audit', { host: name })}">${shown}</a>` : shown;
}

function onWords(on: readonly string[]): Html {
  const more = on.length - MOST_ON;
  return html`${foreignText(on.slice(0, MOST_ON).join(', '))}${more > 0 ? html` <span class="quiet">and ${more} more</span>` : ''}`;
}

function timeline(steps: readonly SessionStep[]): Html {
  return html`<section class="panel" aria-labelledby="timeline-title">
    <h2 id="timeline-title">What happened, in order</h2>
    <ol class="timeline">
      ${steps.map((step, index) => timelineStep(step, dayOf(steps[index - 1])))}
    </ol>
  </section>`;
}

function dayOf(step: SessionStep | undefined): string | null {
  return step === undefined ? null : step.first.time.slice(0, 10);
}

/** The day is written where it begins. */
function timelineStep({ first, count, lastAt }: SessionStep, dayBefore: string | null): Html {
  const day = first.time.slice(0, 10);
  const until = count > 1 && lastAt !== first.time ? html`, until ${writtenTime(lastAt, 'clock')}` : '';
  return html`${day === dayBefore ? '' : html`<li class="day">${day} (UTC)</li>`}
    <li>
      ${writtenTime(first.time, 'clock')} ${wordBadge(first)}
      <span class="what"
        ><span class="mono">${foreignText(eventSubject(first))}</span> ${outcomeCell(first)}
        ${count > 1 ? html`<span class="quiet small">${count} times${until}</span>` : ''}</span
      >
      <a class="nowrap" href="/audit/${first.id}"
        >Why<span class="hidden-but-read"> ${first.type} at ${first.time}</span></a
      >
    </li>`;
}
