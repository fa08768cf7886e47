import { html } from 'hono/html';
import { type McpServerRecord, listMissingCredentials } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { ReadList } from '../../kernel/read_all.ts';
import { lastUsedWords } from '../bindings/use_words.ts';
import { arrangedList, byNewest, byText, type ListQuery } from '../components/arranged_list.ts';
import { flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { healthWords } from './mcp_server_words.ts';
import { tag } from '../components/tag.ts';

interface McpServersView {
  readonly servers: ReadList<McpServerRecord>;
  /** The registry's current versions by server id, if they differ. */
  readonly newer: ReadonlyMap<string, string>;
  readonly query: ListQuery;
  /** When a machine last started it, or a client last called one of its tools. */
  readonly lastUseOf: (server: McpServerRecord) => string | null;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The MCP servers of a user and their enterprise, and their state. */
export function mcpServersPage(view: McpServersView): Page {
  const { servers, done, query, lastUseOf } = view;
  const list = arrangedList<McpServerRecord>({
    kind: {
      path: '/mcp-servers',
      words: ['server', 'servers'],
      placeholder: 'a name, a description, a package …',
      textOf: ({ name, description, mode, owner, registry_id: registryId, url }) =>
        [name, description, mode, owner, registryId, url].join(' '),
      orders: [
        { name: 'name', title: 'By name', compare: byText(({ name, owner }) => `${name} ${owner}`) },
        { name: 'used', title: 'Last used first', compare: byNewest(lastUseOf) },
        {
          name: 'lacking',
          title: 'Without a credential first',
          compare: byText((server) => (listMissingCredentials(server).length > 0 ? 'a' : 'b')),
        },
        { name: 'changed', title: 'Last changed first', compare: byNewest(({ updated_at: updated }) => updated) },
      ],
    },
    query,
    ...servers,
    table: (shown) => table(view, shown),
    none: noServers(),
  });
  const content = html`${pageHeader({
    title: 'MCP servers',
    lead: 'MCP servers that your gateways offer to clients. Their credentials stay in the vault until a server starts.',
    actions: html`<a class="button" href="/mcp-servers/clients">Set up a client</a>
      <a class="button" href="/mcp-servers/new">Register your own</a>
      <a class="button primary" href="/marketplace">Find a server</a>`,
  })}
  ${flash(done)} ${list}`;
  return layout('MCP servers', content);
}

function noServers(): Html {
  return emptyState({
    title: 'No server is installed',
    next: 'Choose one in the marketplace, or register your own program or URL, here or in a terminal:',
    command: 'svc mcp add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .',
    action: html`<a class="button primary" href="/marketplace">Open the marketplace</a>
      <a class="button" href="/mcp-servers/new">Register your own</a>`,
  });
}

function table({ newer, nowMs, lastUseOf }: McpServersView, shown: readonly McpServerRecord[]): Html {
  return dataTable<McpServerRecord>({
    caption: 'MCP servers',
    rows: shown,
    key: ({ id }) => id,
    columns: [
      {
        title: 'Name',
        cell: ({ id, name, description }) =>
          html`<a href="/mcp-servers/${id}" data-result><strong>${name}</strong></a>
            ${description === '' ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      { title: 'State', cell: (server) => html`${healthWords(server, nowMs)} ${lackingHint(server)}` },
      { title: 'Version', cell: ({ id, version }) => versionWords(id, version, newer) },
      { title: 'Last used', cell: (server) => lastUsedWords(lastUseOf(server), nowMs) },
      { title: 'Kind', cell: ({ mode }) => tag(mode) },
      { title: 'Owner', cell: ({ owner }) => tag(owner), isHostedOnly: true },
    ],
  });
}

function lackingHint(server: McpServerRecord): Html | string {
  const names = listMissingCredentials(server);
  if (names.length === 0) return '';
  return html`<span class="sub"><a href="/mcp-servers/${server.id}/credentials">Store ${names.join(', ')}</a></span>`;
}

function versionWords(id: string, version: string | null, newer: ReadonlyMap<string, string>): Html | string {
  const next = newer.get(id);
  if (version === null && next === undefined) return '';
  return html`<span class="number">${foreignText(version ?? '')}</span>
    ${next === undefined ? '' : html`<a class="sub" href="/mcp-servers/${id}/upgrade">${badge('accent', html`Newer version ${foreignText(next)}`)}</a>`}`;
}
