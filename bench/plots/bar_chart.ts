/** Horizontal bar charts as SVG: text stays text, and the colours follow the reader's light or dark setting. */

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** The highlighted bar. */
  readonly own: boolean;
}

export interface Group {
  readonly title: string;
  readonly bars: readonly Bar[];
}

interface Chart {
  readonly title: string;
  /** The text below the title: what a bar shows, and what is better. */
  readonly note: string;
  readonly unit: string;
  readonly groups: readonly Group[];
}

const WIDTH = 720;
const LABEL_WIDTH = 130;
const VALUE_WIDTH = 110;
const BAR_HEIGHT = 16;
const BAR_STEP = 21;
const GROUP_HEAD = 30;
const TOP = 58;

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .note { fill: #59636e; }
    .group { font-weight: 600; }
    .own { fill: #0969da; }
    .other { fill: #afb8c1; }
    .line { fill: none; stroke: #0969da; stroke-width: 1.5; }
    .axis { stroke: #afb8c1; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .note { fill: #9198a1; }
      .own { fill: #4493f8; }
      .other { fill: #656c76; }
      .line { stroke: #4493f8; }
      .axis { stroke: #656c76; }
    }`;

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function formatValue(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function bar({ label, value, own }: Bar, top: number, most: number, unit: string): string {
  const length = (value / most) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH);
  const baseline = top + BAR_HEIGHT - 3;
  return `  <text x="${LABEL_WIDTH - 8}" y="${baseline}" text-anchor="end">${escapeXml(label)}</text>
  <rect class="${own ? 'own' : 'other'}" x="${LABEL_WIDTH}" y="${top}" width="${length.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>
  <text x="${(LABEL_WIDTH + length + 6).toFixed(1)}" y="${baseline}">${formatValue(value)} ${escapeXml(unit)}</text>`;
}

/** Each group has its own scale: bars are compared within a group. */
export function barChart(chart: Chart): string {
  const lines: string[] = [];
  let y = TOP;
  for (const { title, bars } of chart.groups) {
    lines.push(`  <text class="group" x="8" y="${y + 16}">${escapeXml(title)}</text>`);
    y += GROUP_HEAD - 6;
    const most = Math.max(...bars.map(({ value }) => value));
    for (const one of bars) {
      lines.push(bar(one, y, most, chart.unit));
      y += BAR_STEP;
    }
    y += 8;
  }
  return svg(chart, y + 4, lines);
}

/** The frame of every chart. */
export function svg({ title, note }: Pick<Chart, 'title' | 'note'>, height: number, lines: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}">
  <style>${STYLE}
  </style>
  <text class="title" x="8" y="22">${escapeXml(title)}</text>
  <text class="note" x="8" y="42">${escapeXml(note)}</text>
${lines.join('\n')}
</svg>
`;
}
