import { html } from 'hono/html';
import type { RequestCounts, RequestDecision } from '../services/request_counts.ts';
import { dataTable } from './components/data_table.ts';
import { exactTime } from './components/time.ts';
import type { Html } from './html.ts';

const TITLES: { readonly [D in RequestDecision]: string } = {
  added: 'Credential added',
  connector: 'Connector call',
  passed: 'Passed through',
  refused: 'Refused',
};
/** From the bottom of a bar up. */
const ORDER: readonly RequestDecision[] = ['added', 'connector', 'passed', 'refused'];
const HEIGHT = 100;
const WIDTH = 10;
const GAP = 2;

type Span = RequestCounts['spans'][number];

/** Requests over time by decision: a picture, and the same as a table. */
export function requestChart(counts: RequestCounts): Html {
  const total = (decision: RequestDecision) => counts.spans.reduce((sum, span) => sum + span[decision], 0);
  const totals = ORDER.map((decision) => ({ decision, count: total(decision) }));
  if (totals.every(({ count }) => count === 0)) return noRequests(counts);
  const words = totals.map(({ decision, count }) => `${TITLES[decision].toLowerCase()} ${count}`).join(', ');
  return html`<figure class="chart stack">
    <svg
      viewBox="0 0 ${counts.spans.length * WIDTH} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="Requests from ${exactTime(counts.since)} to ${exactTime(counts.until)}: ${words}"
    >
      <line class="axis" x1="0" y1="${HEIGHT}" x2="${counts.spans.length * WIDTH}" y2="${HEIGHT}" />
      ${bars(counts.spans)}
    </svg>
    <div class="chart-times"><span>${exactTime(counts.since)}</span><span>${exactTime(counts.until)}</span></div>
    <ul class="legend">
      ${totals.map(
        ({ decision, count }) =>
          html`<li><i class="bar-${decision}"></i>${TITLES[decision]} <strong class="number">${count}</strong></li>`,
      )}
    </ul>
    ${asTable(counts)}
  </figure>`;
}

function noRequests({ since, until }: RequestCounts): Html {
  return html`<p class="quiet">No request of an agent from ${exactTime(since)} to ${exactTime(until)}.</p>`;
}

function bars(spans: readonly Span[]): Html[] {
  const highest = Math.max(1, ...spans.map((span) => sizeOf(span)));
  return spans.flatMap((span, index) => {
    let below = 0;
    return ORDER.filter((decision) => span[decision] > 0).map((decision) => {
      const height = (span[decision] / highest) * (HEIGHT - 4);
      below += height;
      const y = (HEIGHT - below).toFixed(2);
      return html`<rect
        class="bar-${decision}"
        x="${index * WIDTH + GAP / 2}"
        y="${y}"
        width="${WIDTH - GAP}"
        height="${height.toFixed(2)}"
      />`;
    });
  });
}

function sizeOf(span: Span): number {
  return ORDER.reduce((sum, decision) => sum + span[decision], 0);
}

function asTable({ since, spanSeconds, spans }: RequestCounts): Html {
  const sinceMs = Date.parse(since);
  const rows = spans.map((span, index) => ({
    span,
    from: new Date(sinceMs + index * spanSeconds * 1000).toISOString(),
  }));
  const some = rows.filter(({ span }) => sizeOf(span) > 0);
  return html`<details class="more">
    <summary>The same as a table</summary>
    ${dataTable<(typeof some)[number]>({
      caption: 'Requests over time by decision',
      rows: some,
      columns: [
        { title: 'From', cell: ({ from }) => exactTime(from) },
        ...ORDER.map((decision) => ({
          title: TITLES[decision],
          cell: ({ span }: (typeof some)[number]) => html`<span class="number">${span[decision]}</span>`,
        })),
      ],
    })}
  </details>`;
}
