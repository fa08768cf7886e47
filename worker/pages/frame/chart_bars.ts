import { html } from 'hono/html';
import type { RequestDecision } from '../../../shared/report/request_decision.ts';
import type { RequestCounts } from '../../services/audit/request_counts.ts';
import { exactTime } from '../components/time.ts';
import type { Html } from './html.ts';

/** From the bottom of a bar up. */
export const DECISION_TITLES: { readonly [D in RequestDecision]: string } = {
  added: 'Credential added',
  connector: 'Connector call',
  passed: 'Passed through',
  refused: 'Refused',
};
export const DECISIONS: readonly RequestDecision[] = ['added', 'connector', 'passed', 'refused'];
/** A span of time, with its requests by outcome. */
export interface Bar {
  readonly from: string;
  readonly to: string;
  readonly counts: RequestCounts['spans'][number];
  readonly total: number;
}

const HEIGHT = 100;
/** The space above the highest bar. */
const ROOM = 4;
const WIDTH = 10;
const GAP = 2;

/** The chart: a bar per span of time. The full height of a non-empty one is a link. */
export function chartBars(
  bars: readonly Bar[],
  highest: number,
  label: string,
  pathOf: (from: string, to: string) => string,
): Html {
  const width = bars.length * WIDTH;
  return html`<svg
    viewBox="0 0 ${width} ${HEIGHT}"
    preserveAspectRatio="none"
    role="group"
    aria-label="${label}"
    data-times
  >
    ${[ROOM, (HEIGHT + ROOM) / 2].map((y) => line('grid', width, y))}
    ${bars.map((bar, index) => (bar.total === 0 ? '' : barLink(bar, index, highest, pathOf)))}
    ${line('axis', width, HEIGHT)}
    <rect class="chosen" x="0" y="0" width="0" height="${HEIGHT}" data-own="chosen" />
  </svg>`;
}

function line(kind: 'grid' | 'axis', width: number, y: number): Html {
  return html`<line class="${kind}" x1="0" y1="${y}" x2="${width}" y2="${y}" />`;
}

function barLink(bar: Bar, index: number, highest: number, pathOf: (from: string, to: string) => string): Html {
  const { from, to } = bar;
  const words = `${exactTime(from)} to ${exactTime(to)}: ${wordsOf(bar)}`;
  return html`<a href="${pathOf(from, to)}" aria-label="${words}" data-times>
    <title>${words}</title>
    <rect class="hit" x="${index * WIDTH}" y="0" width="${WIDTH}" height="${HEIGHT}" />
    ${parts(bar, index, highest)}
  </a>`;
}

function wordsOf({ counts }: Bar): string {
  const some = DECISIONS.filter((decision) => counts[decision] > 0);
  return some.map((decision) => `${DECISION_TITLES[decision].toLowerCase()} ${counts[decision]}`).join(', ');
}

/** The requests by outcome, stacked. */
function parts({ counts }: Bar, index: number, highest: number): Html[] {
  let below = 0;
  return DECISIONS.filter((decision) => counts[decision] > 0).map((decision) => {
    const height = (counts[decision] / highest) * (HEIGHT - ROOM);
    below += height;
    return html`<rect
      class="bar-${decision}"
      x="${index * WIDTH + GAP / 2}"
      y="${(HEIGHT - below).toFixed(2)}"
      width="${WIDTH - GAP}"
      height="${height.toFixed(2)}"
    />`;
  });
}
