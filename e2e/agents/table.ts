import { pinnedVersion } from './installed_agents.ts';

export const REFRESH_COMMAND = 'SVC_TEST_FULL=1 AGENTS_MD=write CI=true npx vitest run e2e/agents';

const HEADING = [
  'Command',
  'Agent',
  'Version',
  'Credential',
  'Tried with',
  'Model over',
  'Plain',
  'Container',
  'Sealed container',
];
const [BEGIN, END] = ['<!-- agents -->', '<!-- /agents -->'];

/** An agent's row. Only an agent whose test passed is added to the page. */
export function rowOf(tried: {
  readonly agent: string;
  readonly title: string;
  readonly npm: string;
  readonly credential: string;
  readonly args: readonly string[];
  readonly over: 'SSE' | 'WebSocket';
  /** Whether it is tried in a container too, with every host in reach and sealed. */
  readonly inContainer: boolean;
}): readonly string[] {
  const words = tried.args.map((arg) => (/^[\w./-]+$/.test(arg) ? arg : `'${arg}'`)).join(' ');
  const version = pinnedVersion(tried.npm);
  return [
    `\`svc ${tried.agent}\``,
    tried.title,
    version,
    tried.credential,
    `\`${words}\``,
    tried.over === 'SSE' ? 'HTTP stream' : tried.over,
    'yes',
    ...(tried.inContainer ? ['yes', 'yes'] : ['no', 'no']),
  ];
}

/** The table as Markdown. */
export function agentsTable(rows: readonly (readonly string[])[]): string {
  const widths = HEADING.map((_, column) => Math.max(...[HEADING, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(HEADING), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

/** The page's table. */
export function tableOf(page: string): string {
  return page.slice(page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)).trim();
}

/** The page with this table. */
export function withTable(page: string, table: string): string {
  return `${page.slice(0, page.indexOf(BEGIN) + BEGIN.length)}\n\n${table}\n\n${page.slice(page.indexOf(END))}`;
}
