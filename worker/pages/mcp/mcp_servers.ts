import { html } from 'hono/html';
import { type McpServerRecord, listMissingCredentials } from '../../../shared/wire/mcp/mcp_servers.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import { flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { healthWords } from './mcp_server_words.ts';

interface McpServersView {
  readonly servers: ListPage<McpServerRecord>;
  /** The registry's current versions by server id, if they differ. */
  readonly newer: ReadonlyMap<string, string>;
  readonly cursor: string | undefined;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The MCP servers of a user and their enterprise, and their state. */
export function mcpServersPage(view: McpServersView): Page {
  const { servers, done, cursor } = view;
  const content = html`${pageHeader({
      title: 'MCP servers',
      lead: 'MCP servers that your gateways offer to clients. Their credentials stay in the vault until a server starts.',
      actions: html`<a class="button primary" href="/marketplace">Find a server</a>
        <a class="button" href="/mcp-servers/new">Register your own</a>`,
    })}
    ${flash(done)}
    <div class="panel flush">${servers.items.length === 0 ? noServers() : table(view)}</div>
    ${pages(cursor, servers.next_cursor)}`;
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

function table({ servers, newer, nowMs }: McpServersView): Html {
  return dataTable<McpServerRecord>({
    caption: 'MCP servers',
    rows: servers.items,
    key: ({ id }) => id,
    columns: [
      {
        title: 'Name',
        cell: ({ id, name, description }) =>
          html`<a href="/mcp-servers/${id}"><strong>${name}</strong></a>
            ${description === '' ? '' : html`<span class="sub">${foreignText(description)}</span>`}`,
      },
      { title: 'State', cell: (server) => html`${healthWords(server, nowMs)} ${lackingHint(server)}` },
      { title: 'Version', cell: ({ id, version }) => versionWords(id, version, newer) },
      { title: 'Kind', cell: ({ mode }) => html`<span class="tag">${mode}</span>` },
      { title: 'Owner', cell: ({ owner }) => html`<span class="tag">${owner}</span>` },
    ],
  });
}

function lackingHint(server: McpServerRecord): Html | string {
  const names = listMissingCredentials(server);
  if (names.length === 0) return '';
  return html`<span class="sub"><a href="/mcp-servers/${server.id}/credentials">Store ${names.join(', ')}</a></span>`;
}

function versionWords(id: string, version: string | null, newer: ReadonlyMap<string, string>): Html {
  const next = newer.get(id);
  return html`<span class="number">${foreignText(version ?? '')}</span>
    ${next === undefined ? '' : html`<a class="sub" href="/mcp-servers/${id}/upgrade">${badge('accent', 'Newer version')} ${foreignText(next)}</a>`}`;
}

function pages(cursor: string | undefined, next: string | null): Html | string {
  if (next === null && cursor === undefined) return '';
  return html`<nav class="pager" aria-label="Pages">
    ${cursor === undefined ? '' : html`<a class="button" href="/mcp-servers">First page</a>`}
    ${next === null ? '' : html`<a class="button" rel="next" href="${pathWith('/mcp-servers', { cursor: next })}">Next page</a>`}
  </nav>`;
}
