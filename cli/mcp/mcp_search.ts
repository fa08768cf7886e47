import {
  type MarketplaceDetail,
  type MarketplaceItem,
  marketplacePage,
  type MarketplacePage,
  marketplaceReadme,
} from '../../shared/wire/marketplace.ts';
import { publisherCommand } from '../../shared/mcp/publisher_command.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { adviceLines, formatPublished, formatStarted, wordText } from './mcp_entry_text.ts';
import { registryEntry } from './mcp_lookup.ts';
import type { Column, Paint } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';
import { shortenText } from '../terminal/cell_text.ts';

export interface McpSearchOptions {
  readonly transport?: string;
  readonly registryType?: string;
  readonly needsSecret?: string;
  readonly publisher?: string;
  readonly limit: string;
}
export interface McpViewOptions {
  readonly release?: string;
  readonly readme?: boolean;
}

const MAX_SHOWN = 1_000;
const PAGE = 100;

/** `svc mcp search [TEXT...]`. */
export async function searchRegistry(call: Call<McpSearchOptions>): Promise<undefined> {
  const { options, print, args } = call;
  const wanted = /^\d{1,4}$/.test(options.limit) ? Number(options.limit) : 0;
  if (wanted < 1 || wanted > MAX_SHOWN) throw new CliError(EXIT.usage, `--limit must be from 1 to ${MAX_SHOWN}`);
  const { items, last } = await fetchMatches(call, args.join(' '), wanted);
  const { fetched_at, stale, partial } = last;
  print.rows({ items, fetched_at, stale, partial }, items, COLUMNS, 'The registry has no matching entries.');
  if (print.json) return;
  if (stale)
    print.warn(
      `cached results from ${agoText(fetched_at, call.context.now())}: the registry does not answer, or is being queried again`,
    );
  if (partial)
    print.note(
      'Only names were searched; descriptions can be searched once the local mirror of the registry is complete.',
    );
}

async function fetchMatches(
  { context, options }: Call<McpSearchOptions>,
  text: string,
  wanted: number,
): Promise<{ readonly items: readonly MarketplaceItem[]; readonly last: MarketplacePage }> {
  const client = controlClient(context, options);
  const items: MarketplaceItem[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { transport, registryType: registry_type, needsSecret, publisher } = options;
    const needs_secret = needsSecret === undefined ? undefined : String(needsSecret === 'yes');
    const query = { q: text, transport, registry_type, needs_secret, publisher, cursor };
    const limit = Math.min(PAGE, wanted - items.length);
    const last = await client.call('GET', '/v1/marketplace/servers', marketplacePage, { query: { ...query, limit } });
    items.push(...last.items);
    if (items.length >= wanted || last.next_cursor === null) return { items, last };
    cursor = last.next_cursor;
  }
}

const SHOWN_CHARACTERS = 70;

const COLUMNS: readonly Column<MarketplaceItem>[] = [
  { title: 'NAME', cell: ({ name }) => formatPublished(name) },
  { title: 'VERSION', cell: ({ version }) => formatPublished(version ?? '-') },
  { title: 'KIND', cell: kindsOf },
  {
    title: '',
    cell: stateOf,
    style: (item) => (stateOf(item) === 'installed' ? 'green' : 'yellow'),
  },
  { title: 'RISK', cell: (item) => risksOf(item), style: () => 'yellow' },
  { title: 'DESCRIPTION', cell: ({ description }) => shortenText(formatPublished(description), SHOWN_CHARACTERS) },
];

function stateOf({ installed, status, rule_problem: rule }: MarketplaceItem): string {
  if (rule !== null) return 'not allowed here';
  return installed ? 'installed' : status === 'active' ? '' : status;
}

function kindsOf({ packages, remotes }: MarketplaceItem): string {
  const kinds = [...packages.map(({ registry_type }) => registry_type), ...remotes.map(() => 'remote')];
  return [...new Set(kinds)].join(',') || '-';
}

function risksOf({ risks }: Pick<MarketplaceItem, 'risks'>): string {
  return formatPublished(risks.map(({ text }) => text).join(', ')) || '-';
}

/** `svc mcp view ENTRY`. */
export async function viewEntry({ context, args, options, print }: Call<McpViewOptions>): Promise<undefined> {
  const client = controlClient(context, options);
  if (options.readme === true) {
    const query = { version: options.release };
    const path = `/v1/marketplace/readmes/${encodeURIComponent(args[0] ?? '')}`;
    const readme = await client.call('GET', path, marketplaceReadme, { query });
    const { of, host, text, cut } = readme;
    print.data(
      readme,
      () =>
        `${text
          .split('\n')
          .map((line) => formatPublished(line))
          .join('\n')}\n`,
    );
    if (print.json) return;
    print.note(
      formatPublished(`README of ${of}, sent by ${host}. Its publisher wrote it: svc has checked nothing in it.`),
    );
    if (cut) print.note('The rest is left out, because it is too long.');
    return;
  }
  const detail = await registryEntry(client, args[0] ?? '', options.release);
  print.data(detail, () => `${entryLines(detail, print.paint).join('\n')}\n`);
  if (detail.stale && !print.json) {
    print.warn(`the registry does not answer; this entry was cached ${agoText(detail.fetched_at, context.now())}`);
  }
}

function entryLines(detail: MarketplaceDetail, paint: Paint): readonly string[] {
  const { name, version, description, status, repository_url, website_url, preview, rule_problem: rule } = detail;
  const links = [repository_url, website_url].filter((link) => link !== null);
  return [
    paint('bold', formatPublished(`${name} ${version ?? ''}`.trim())),
    ...(description === '' ? [] : [formatPublished(description)]),
    ...(detail.risks.length === 0 ? [] : [paint('yellow', `risk: ${risksOf(detail)}`)]),
    ...(rule === null ? [] : [paint('yellow', formatPublished(`it may not be used here: ${rule}`))]),
    ...(status === 'active' ? [] : [paint('yellow', `its publisher marked it as ${status}`)]),
    ...links.map((link) => formatPublished(link)),
    `versions: ${detail.versions.map((each) => formatPublished(each.version ?? '?')).join(', ')}`,
    ...detail.installed_servers.map(
      (server) => `installed as ${server.name} (${server.owner}, ${server.version ?? '?'})`,
    ),
    ...optionLines(detail),
    ...publisherLines(detail),
    ...(preview === null ? [] : [...formatStarted(preview, paint), ...adviceLines(preview, paint)]),
  ];
}

/** The publisher's own command. The command that an install would start is derived and printed below. */
function publisherLines({ packages }: MarketplaceDetail): readonly string[] {
  return packages.flatMap((item) => {
    const words = publisherCommand(item);
    const text = words?.map((word) => wordText(word)).join(' ');
    return text === undefined ? [] : [`its publisher starts ${formatPublished(item.identifier)} with: ${text}`];
  });
}

function optionLines({ options }: MarketplaceDetail): readonly string[] {
  if (options.length === 0) return ['It cannot be installed: its entry has neither a package nor a remote address.'];
  return options.map(({ kind, index, ecosystem, label, problem }) => {
    const what = kind === 'remote' ? `--remote ${index + 1}` : `--package ${index + 1} (${ecosystem})`;
    return formatPublished(`${what}: ${label}${problem === null ? '' : `: cannot be installed. ${problem.message}`}`);
  });
}
