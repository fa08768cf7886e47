import { html } from 'hono/html';
import type { RequestDecision } from '../../../shared/report/request_decision.ts';
import type { RequestCounts } from '../../services/audit/request_counts.ts';
import { type Bar, chartBars, DECISION_TITLES, DECISIONS } from '../frame/chart_bars.ts';
import { dataTable } from '../components/data_table.ts';
import { exactTime, writtenTime } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { counted } from '../../../shared/model/sentence.ts';

const HOW_TO_CHOOSE = 'Drag over the bars to choose a period; by keyboard, hold Shift and press an arrow key on a bar.';

/** How many times are shown below the chart. */
const LABELS = 4;
const DAY_SECONDS = 86_400;

/** Requests over time by decision, as a chart and as a table. Each bar links to its events. */
export function requestChart(counts: RequestCounts, pathOf: (from: string, to: string) => string): Html {
  const totals = DECISIONS.map((decision) => ({ decision, count: sum(counts, decision) }));
  if (totals.every(({ count }) => count === 0)) return noRequests(counts);
  const bars = barsOf(counts);
  const highest = Math.max(...bars.map(({ total }) => total));
  const words = totals.map(({ decision, count }) => `${DECISION_TITLES[decision].toLowerCase()} ${count}`).join(', ');
  const label = `Requests from ${exactTime(counts.since)} to ${exactTime(counts.until)}: ${words}`;
  return html`<figure
    class="chart stack"
    data-island="brush"
    data-begins="${Date.parse(counts.begins)}"
    data-step="${counts.spanSeconds * 1000}"
    data-count="${bars.length}"
  >
    <p class="quiet small">
      Each bar is ${durationWords(counts.spanSeconds)}, the highest has ${highest}
      ${highest === 1 ? 'request' : 'requests'}; each links to its events. Times are in <span data-zone>UTC</span>.
    </p>
    ${chartBars(bars, highest, label, pathOf)}
    <p class="quiet small chosen-words" role="status" data-own="chosen" hidden>${HOW_TO_CHOOSE}</p>
    <div class="chart-times">${timeLabels(counts)}</div>
    <ul class="legend">
      ${totals.map(
        ({ decision, count }) =>
          html`<li>
            <i class="bar-${decision}"></i>${DECISION_TITLES[decision]} <strong class="number">${count}</strong>
          </li>`,
      )}
    </ul>
    ${requestTable(bars, pathOf)}
  </figure>`;
}

function noRequests({ since, until }: RequestCounts): Html {
  return html`<p class="quiet">No request of an agent from ${writtenTime(since)} to ${writtenTime(until)}.</p>`;
}

function sum({ spans }: RequestCounts, decision: RequestDecision): number {
  return spans.reduce((all, span) => all + span[decision], 0);
}

function barsOf({ since, until, begins, spanSeconds, spans }: RequestCounts): Bar[] {
  const at = (index: number) => new Date(Date.parse(begins) + index * spanSeconds * 1000).toISOString();
  return spans.map((counts, index) => ({
    from: at(index) < since ? since : at(index),
    to: at(index + 1) > until ? until : at(index + 1),
    counts,
    total: DECISIONS.reduce((all, decision) => all + counts[decision], 0),
  }));
}

/** `30 minutes`. */
function durationWords(seconds: number): string {
  const units = [
    [DAY_SECONDS, 'day'],
    [3_600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ] as const;
  const [size, word] = units.find(([unit]) => seconds % unit === 0) ?? [1, 'second'];
  const amount = seconds / size;
  return counted(amount, word);
}

/** Times at equal distances below the bars; with the date if they span several days. */
function timeLabels({ begins, spanSeconds, spans }: RequestCounts): Html[] {
  const lengthMs = spans.length * spanSeconds * 1000;
  return Array.from({ length: LABELS + 1 }, (_, index) => {
    const time = new Date(Date.parse(begins) + (lengthMs * index) / LABELS).toISOString();
    return html`<span>${labelOf(time, lengthMs / 1000, index === 0 || index === LABELS)}</span>`;
  });
}

function labelOf(time: string, lengthSeconds: number, isEnd: boolean): Html {
  const isShort = lengthSeconds < 600;
  if (isEnd || lengthSeconds > DAY_SECONDS) return writtenTime(time, isShort ? 'day and clock' : 'day and minute');
  return writtenTime(time, isShort ? 'clock' : 'minute');
}

function requestTable(bars: readonly Bar[], pathOf: (from: string, to: string) => string): Html {
  return html`<details class="more">
    <summary>Show as a table</summary>
    ${dataTable<Bar>({
      caption: 'Requests over time by decision',
      rows: bars.filter(({ total }) => total > 0),
      columns: [
        { title: 'From', cell: ({ from, to }) => html`<a href="${pathOf(from, to)}">${writtenTime(from)}</a>` },
        ...DECISIONS.map((decision) => ({
          title: DECISION_TITLES[decision],
          cell: ({ counts }: Bar) => html`<span class="number">${counts[decision]}</span>`,
        })),
      ],
    })}
  </details>`;
}
