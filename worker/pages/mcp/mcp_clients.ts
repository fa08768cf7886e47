import { html } from 'hono/html';
import {
  cursorInstallLink,
  type GatewayEntry,
  gatewayConfiguration,
  vscodeInstallLink,
} from '../../../shared/mcp/client_links.ts';
import { codeBlock } from '../components/code_block.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The most common clients; `svc mcp export --list` lists all. */
const CLIENTS = [
  { title: 'Claude Code', name: 'claude-code' },
  { title: 'Claude Desktop', name: 'claude-desktop' },
  { title: 'Codex', name: 'codex' },
  { title: 'Cursor', name: 'cursor' },
  { title: 'Gemini CLI', name: 'gemini-cli' },
  { title: 'VS Code', name: 'vscode' },
];

/** How a client gets the servers. */
export function mcpClientsPage(entry: GatewayEntry): Page {
  const title = 'Set up a client';
  const content = html`${pageHeader({
    title,
    lead: 'A client gets every installed server by one entry in its configuration.',
    above: { path: '/mcp-servers', title: 'MCP servers' },
  })}
  ${clientsSection(entry)}`;
  return layout(title, content, 'narrow');
}

/** The commands, links and configurations by which a client starts the gateway. */
export function clientsSection(entry: GatewayEntry): Html {
  return html`<section class="panel" aria-labelledby="clients-title">
    <h2 id="clients-title">In your client, once for all servers</h2>
    <p>
      The client starts <code data-command>svc mcp gateway</code>, which offers all your servers. No credential is
      written to its configuration file.
    </p>
    ${CLIENTS.map(
      ({ title, name }) =>
        html`<h3>${title}</h3>
          ${codeBlock(`svc mcp export --client ${name} --write`)}`,
    )}
    <h3>By a link or by hand</h3>
    <p>
      <a class="button compact" href="${vscodeInstallLink(entry)}">Add to VS Code</a>
      <a class="button compact" href="${cursorInstallLink(entry)}">Add to Cursor</a>
    </p>
    <p class="quiet small">
      The client asks
      first.${entry.command === 'svc' ? html` These need <code>svc</code> on the client’s PATH; the commands above write its full path.` : ''}
    </p>
    <details class="more">
      <summary>The configuration as JSON</summary>
      <p>For most clients:</p>
      ${codeBlock(gatewayConfiguration('mcpServers', entry))}
      <p>In <code>mcp.json</code> of VS Code:</p>
      ${codeBlock(gatewayConfiguration('servers', entry))}
    </details>
    <p class="quiet small">
      Omit <code>--write</code> to see what would be written. All clients:
      <code data-command>svc mcp export --list</code>
    </p>
  </section>`;
}
