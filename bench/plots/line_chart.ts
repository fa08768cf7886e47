import { escapeXml, svg } from './bar_chart.ts';

interface LineChart {
  readonly title: string;
  readonly note: string;
  readonly xUnit: string;
  readonly yUnit: string;
  readonly points: readonly (readonly [number, number])[];
}

const LEFT = 70;
const RIGHT = 20;
const TOP = 60;
const PLOT_WIDTH = 720 - LEFT - RIGHT;
const PLOT_HEIGHT = 180;

/** One line over time, from zero. */
export function lineChart(chart: LineChart): string {
  const mostX = Math.max(1, ...chart.points.map(([x]) => x));
  const mostY = Math.max(1, ...chart.points.map(([, y]) => y)) * 1.1;
  const at = ([x, y]: readonly [number, number]): string => {
    const left = LEFT + (x / mostX) * PLOT_WIDTH;
    const top = TOP + PLOT_HEIGHT - (y / mostY) * PLOT_HEIGHT;
    return `${left.toFixed(1)},${top.toFixed(1)}`;
  };
  const bottom = TOP + PLOT_HEIGHT;
  return svg(chart, bottom + 30, [
    `  <line class="axis" x1="${LEFT}" y1="${bottom}" x2="${LEFT + PLOT_WIDTH}" y2="${bottom}"/>`,
    `  <polyline class="line" points="${chart.points.map(at).join(' ')}"/>`,
    `  <text x="${LEFT - 8}" y="${TOP + 10}" text-anchor="end">${mostY.toFixed(0)}</text>`,
    `  <text x="${LEFT - 8}" y="${bottom}" text-anchor="end">0 ${escapeXml(chart.yUnit)}</text>`,
    `  <text x="${LEFT}" y="${bottom + 18}">0</text>`,
    `  <text x="${LEFT + PLOT_WIDTH}" y="${bottom + 18}" text-anchor="end">${mostX.toFixed(0)} ${escapeXml(chart.xUnit)}</text>`,
  ]);
}
