import { html } from 'hono/html';
import type { DecisionCounts, ListedSession, PlanStep } from '../../../shared/report/session_list.ts';
import type { PlanRun, SessionList } from '../../services/audit/session_list.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { badge } from '../components/badge.ts';
import { type Column, dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pager } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { sessionPath } from './event_table.ts';
import { tag } from '../components/tag.ts';
import { counted } from '../../../shared/model/sentence.ts';

export const SESSIONS_PATH = '/audit/sessions';
export const PLANS_PATH = '/plans';

interface ListView<Item> {
  readonly list: SessionList<Item>;
  readonly cursor: string | undefined;
  readonly nowMs: number;
}

/** The sessions of agents, each with what was decided about its requests. */
export function sessionsPage({ list, cursor, nowMs }: ListView<ListedSession>): Page {
  const { items, nameOf, read, nextCursor } = list;
  const content = html`${pageHeader({
      title: 'Sessions',
      lead: 'Each run of an agent or a command, newest first. Open one for the credentials that it used and its decisions in order.',
    })}
    <div class="panel flush">
      ${items.length === 0 ? noSessions() : dataTable({ caption: 'Sessions', rows: items, columns: sessionColumns(nameOf, nowMs) })}
    </div>
    ${items.length === 0 || (nextCursor === null && cursor === undefined) ? '' : html`<p class="quiet small">Of ${counted(read, 'event')}: a session’s older ones may be on the next page, and its own page has all.</p>`}
    ${pager(SESSIONS_PATH, { cursor }, nextCursor)}`;
  return layout('Sessions', content);
}

function noSessions(): Html {
  const next = 'A session appears here with its first request.';
  return emptyState({ title: 'No session yet', next, command: 'svc run -- curl https://api.github.com/user' });
}

function sessionColumns(nameOf: NameOf, nowMs: number): Column<ListedSession>[] {
  return [
    sessionColumn(nameOf),
    machineColumn(nameOf),
    { title: 'With a credential', cell: ({ counts }) => String(counts.added) },
    { title: 'Passed', cell: ({ counts }) => String(counts.passed) },
    { title: 'Refused', cell: ({ counts }) => String(counts.refused) },
    { title: 'Latest', cell: ({ lastAt }) => timeAgo(lastAt, nowMs) },
  ];
}

function sessionColumn(nameOf: NameOf): Column<ListedSession> {
  return {
    title: 'Session',
    cell: ({ id, isPlan }) => html`${sessionLink(nameOf, id)} ${isPlan ? tag('plan') : ''}`,
  };
}

function sessionLink(nameOf: NameOf, id: string): Html {
  return html`<a href="${sessionPath(id)}">${foreignText(nameOf(id) ?? id)}</a>`;
}

function machineColumn(nameOf: NameOf): Column<ListedSession> {
  return {
    title: 'Machine',
    cell: ({ sidecar }) => (sidecar === null ? 'several' : foreignText(nameOf(sidecar) ?? sidecar)),
  };
}

/** The runs of plans, each with its steps. */
export function plansPage({ list, cursor, nowMs }: ListView<PlanRun>): Page {
  const { items, nameOf, nextCursor } = list;
  const content = html`${pageHeader({
      title: 'Plans',
      lead: 'Each run of a plan, newest first, with the steps that it started. The page of a run says whether its steps were limited to the hosts of the signed lock.',
    })}
    <div class="panel flush">
      ${
        items.length === 0
          ? noPlans()
          : dataTable<PlanRun>({
              caption: 'Runs of plans',
              rows: items,
              columns: [
                { ...sessionColumn(nameOf), cell: ({ id }) => sessionLink(nameOf, id) },
                { title: 'Steps', cell: ({ steps }) => html`<div class="tags">${steps.map(stepTag)}</div>` },
                machineColumn(nameOf),
                { title: 'Latest step', cell: ({ lastAt }) => timeAgo(lastAt, nowMs) },
              ],
            })
      }
    </div>
    ${items.length === 0 ? '' : html`<p class="quiet small">Exit codes and output stay where the plan ran: in its table, or in <code data-command>svc plan run --json</code>.</p>`}
    ${pager(PLANS_PATH, { cursor }, nextCursor)}`;
  return layout('Plans', content);
}

function noPlans(): Html {
  const next = 'A plan runs commands in one container and limits each to its own hosts. Its runs appear here.';
  return emptyState({ title: 'No plan has run yet', next, command: 'svc plan init' });
}

const STATES = {
  started: ['plain', 'started'],
  not_started: ['bad', 'never ran'],
  unknown: ['warn', 'not known'],
} as const satisfies { readonly [S in PlanStep['state']]: readonly [string, string] };

function stepTag({ id, state }: PlanStep): Html {
  const [kind, word] = STATES[state];
  return badge(kind, html`${id}${state === 'started' ? '' : `: ${word}`}`);
}

/** The steps of a plan, on the page of its session. */
export function stepsPanel(steps: readonly PlanStep[]): Html | string {
  if (steps.length === 0) return '';
  return html`<section class="panel flush" aria-labelledby="steps-title">
    <div class="panel-head">
      <h2 id="steps-title">Steps of the plan</h2>
      ${steps.some(({ isOpen }) => isOpen) ? html`<span class="small">${badge('warn', 'open network: a step can bypass the proxy')}</span>` : ''}
    </div>
    ${dataTable<PlanStep>({
      caption: 'Steps of the plan',
      rows: steps,
      columns: [
        { title: 'Step', cell: ({ id }) => html`<code>${foreignText(id)}</code>` },
        { title: 'State', cell: ({ state }) => badge(STATES[state][0], STATES[state][1]) },
        { title: 'Effect', cell: ({ effect }) => (effect === null ? '' : tag(effect)) },
        { title: 'May reach', cell: reachWords },
        { title: 'Requests', cell: ({ counts }) => countWords(counts) },
        { title: 'Refused hosts', cell: ({ refusedHosts }) => hostList(refusedHosts) },
      ],
    })}
  </section>`;
}

function reachWords({ hosts, isEnforced, state }: PlanStep): Html {
  if (hosts.length === 0) return html`<span class="quiet">no host</span>`;
  const isLoose = !isEnforced && state === 'started';
  return html`${hostList(hosts)} ${isLoose ? badge('warn', 'not enforced') : ''}`;
}

const MOST_HOSTS = 5;

function hostList(hosts: readonly string[]): Html | string {
  if (hosts.length === 0) return '';
  const more = hosts.length - MOST_HOSTS;
  return html`<code>${foreignText(hosts.slice(0, MOST_HOSTS).join(', '))}</code
    >${more > 0 ? html` <span class="quiet">and ${more} more</span>` : ''}`;
}

function countWords({ added, passed, refused }: DecisionCounts): string {
  const parts = [
    [added, 'with a credential'],
    [passed, 'passed'],
    [refused, 'refused'],
  ] as const;
  const words = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return words.length === 0 ? 'none' : words.join(', ');
}
