import { html } from 'hono/html';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { Activity } from '../../services/audit/activity.ts';
import type { NameOf } from '../../services/audit/names.ts';
import { dataTable } from '../components/data_table.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pathWith } from '../components/pager.ts';
import { writtenTime, timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { mainSentence } from './audit_words.ts';
import { sessionPath, wordBadge } from './event_table.ts';

type Counts = Activity['minutes'][number];

/** A connector's call has a credential too. */
const SHOWN = ['added', 'passed', 'refused'] as const;
type Shown = (typeof SHOWN)[number];
const TITLES: { readonly [S in Shown]: string } = {
  added: 'With a credential',
  passed: 'Passed through',
  refused: 'Refused',
};

function shownCount(counts: Counts, shown: Shown): number {
  return shown === 'added' ? counts.added + counts.connector : counts[shown];
}

/** The requests of the last 24 hours by minute, as a chart and by the hour as a table. */
export function activityChart(activity: Activity): Html {
  const { minutes } = activity;
  const totals = SHOWN.map((shown) => ({ shown, count: sumOf(minutes, shown) }));
  const highest = Math.max(...minutes.map(totalOf));
  if (highest === 0) return html`<p class="quiet pad">No request of an agent in the last 24 hours.</p>`;
  const words = totals.map(({ shown, count }) => `${TITLES[shown].toLowerCase()} ${count}`).join(', ');
  return html`<figure class="chart stack pad">
    <p class="quiet small">
      Requests by minute, at most ${highest} in one. Times in the table are in <span data-zone>UTC</span>.
    </p>
    <svg
      viewBox="0 0 ${minutes.length} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="Requests by minute in the last 24 hours: ${words}; at most ${highest} in a minute"
    >
      ${SHOWN.map((shown) => html`<path class="bar-${shown}" d="${barsOf(minutes, shown, highest)}" />`)}
      <line class="axis" x1="0" y1="${HEIGHT}" x2="${minutes.length}" y2="${HEIGHT}" />
    </svg>
    <div class="chart-times">
      ${['24 h ago', '18 h', '12 h', '6 h', 'now'].map((label) => html`<span>${label}</span>`)}
    </div>
    <ul class="legend">
      ${totals.map(
        ({ shown, count }) =>
          html`<li><i class="bar-${shown}"></i>${TITLES[shown]} <strong class="number">${count}</strong></li>`,
      )}
    </ul>
    ${hourTable(activity)}
  </figure>`;
}

const HEIGHT = 100;
/** A minute is one unit wide; a bar is wider, because it is less than a pixel on most screens. */
const BAR = 2;

/** The bars of one outcome, which stand on those of the outcomes before it. */
function barsOf(minutes: readonly Counts[], shown: Shown, highest: number): string {
  const below = SHOWN.slice(0, SHOWN.indexOf(shown));
  const scale = HEIGHT / highest;
  return minutes
    .map((counts, index) => {
      const count = shownCount(counts, shown);
      if (count === 0) return '';
      const base = below.reduce((all, each) => all + shownCount(counts, each), 0) * scale;
      return `M${index} ${round(HEIGHT - base)}v${round(-count * scale)}h${BAR}v${round(count * scale)}z`;
    })
    .join('');
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function sumOf(minutes: readonly Counts[], shown: Shown): number {
  return minutes.reduce((all, counts) => all + shownCount(counts, shown), 0);
}

function totalOf(counts: Counts): number {
  return SHOWN.reduce((all, shown) => all + shownCount(counts, shown), 0);
}

const HOUR = 60;

function hourTable({ beginsMs, minutes }: Activity): Html {
  const hours = Array.from({ length: minutes.length / HOUR }, (_, index) => ({
    from: new Date(beginsMs + index * HOUR * 60_000).toISOString(),
    to: new Date(beginsMs + (index + 1) * HOUR * 60_000).toISOString(),
    minutes: minutes.slice(index * HOUR, (index + 1) * HOUR),
  })).filter((hour) => hour.minutes.some((counts) => totalOf(counts) > 0));
  return html`<details class="more">
    <summary>Show as a table</summary>
    ${dataTable<(typeof hours)[number]>({
      caption: 'Requests by hour',
      rows: hours,
      columns: [
        {
          title: 'From',
          cell: ({ from, to }) =>
            html`<a href="${pathWith('/audit', { since: from, until: to })}">${writtenTime(from)}</a>`,
        },
        ...SHOWN.map((shown) => ({
          title: TITLES[shown],
          cell: (hour: (typeof hours)[number]) => html`<span class="number">${sumOf(hour.minutes, shown)}</span>`,
        })),
      ],
    })}
  </details>`;
}

/** The way of the newest request, from the agent by its sidecar to the host, and why it went so. */
export function newestWay(event: StoredAuditEvent | null, nameOf: NameOf): Html | string {
  if (event === null) return '';
  const { id, session_id: session, sidecar_id: sidecar, data } = event;
  const why = mainSentence(event);
  return html`<ol class="hops" aria-label="The newest request" data-key="${id}">
    <li class="hop">
      <span class="quiet small">Agent</span>
      ${
        session === null
          ? html`<span>the control plane</span>`
          : html`<a href="${sessionPath(session)}" title="${session}"
              >${foreignText(nameOf(session) ?? shortSession(session))}</a
            >`
      }
    </li>
    <li class="hop">
      <span class="quiet small">Sidecar</span>
      <span>${sidecar === null ? 'none' : foreignText(nameOf(sidecar) ?? sidecar)}</span>
    </li>
    <li class="hop decision">
      ${wordBadge(event)}
      <span class="small"
        >${foreignText(why)}
        <a id="why-newest" href="/audit/${id}"
          >Why<span class="hidden-but-read"> was the newest request decided so?</span></a
        ></span
      >
    </li>
    <li class="hop">
      <span class="quiet small">${foreignText(data['svc.proxy.method'] ?? 'Host')}</span>
      <span class="mono"
        >${foreignText(`${data['svc.proxy.upstream.host'] ?? ''}${data['svc.proxy.upstream.path'] ?? ''}`, 80)}</span
      >
    </li>
  </ol>`;
}

function shortSession(session: string): string {
  return `session …${session.slice(-6)}`;
}

/** The sessions that sent requests in the last minutes. */
export function activeAgentsPanel({ agents }: Activity, nameOf: NameOf, nowMs: number): Html {
  return html`<section class="panel flush" aria-labelledby="agents-title">
    <div class="panel-head"><h2 id="agents-title">Agents active now</h2></div>
    ${
      agents.length === 0
        ? html`<p class="quiet pad">No agent sent a request in the last five minutes.</p>`
        : dataTable<Activity['agents'][number]>({
            caption: 'Agents with a request in the last five minutes',
            rows: agents,
            key: ({ session }) => session,
            columns: [
              {
                title: 'Agent',
                cell: ({ session, sidecar }) =>
                  html`<a href="${sessionPath(session)}" title="${session}"
                      >${foreignText(nameOf(session) ?? shortSession(session))}</a
                    >
                    ${sidecar === null ? '' : html`<span class="sub" title="${sidecar}">${foreignText(nameOf(sidecar) ?? sidecar)}</span>`}`,
              },
              { title: 'Requests', cell: ({ requests }) => html`<span class="number">${requests}</span>` },
              {
                title: 'Last',
                cell: ({ lastAt, lastHost }) =>
                  html`${timeAgo(lastAt, nowMs)}<span class="sub mono">${foreignText(lastHost ?? '', 60)}</span>`,
              },
            ],
          })
    }
  </section>`;
}

/** The hosts with the most of the newest requests. */
export function topHostsPanel({ hosts, counted }: Activity): Html {
  return html`<section class="panel flush" aria-labelledby="hosts-title">
    <div class="panel-head">
      <h2 id="hosts-title">Top hosts</h2>
      <span class="quiet small">${counted === 1 ? 'of one request' : `of the newest ${counted} requests`}</span>
    </div>
    ${dataTable<Activity['hosts'][number]>({
      caption: 'Top hosts',
      rows: hosts,
      key: ({ host }) => host,
      columns: [
        {
          title: 'Host',
          cell: ({ host }) => html`<a class="mono" href="${pathWith('/audit', { host })}">${foreignText(host, 60)}</a>`,
        },
        { title: 'Requests', cell: ({ requests }) => html`<span class="number">${requests}</span>` },
        { title: 'Refused', cell: ({ refused }) => html`<span class="number">${refused}</span>` },
      ],
    })}
  </section>`;
}
