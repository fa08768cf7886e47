import { html } from 'hono/html';
import { isLoopbackRedirect } from '../../../shared/net/redirect_uri.ts';
import type { ServedServer } from '../../services/mcp/served/served_servers.ts';
import type { McpClient } from '../../tokens/mcp/mcp_client.ts';
import { alert } from '../components/alert.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignLink, foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

interface ConsentView {
  readonly client: McpClient;
  readonly redirectUri: string;
  /** Where the form is sent: the client's request. */
  readonly action: string;
  readonly served: readonly ServedServer[];
}

/** Asks the user to connect an MCP client: who it says it is, where the answer goes, and what it gets. */
export function clientConsentPage({ client, redirectUri, action, served }: ConsentView): Page {
  const content = html`${pageHeader({ title: 'Connect this MCP client?' })}
    <div class="panel">
      ${definitionList([
        ['It calls itself', client.name === '' ? 'no name' : foreignText(client.name)],
        ['Published by', client.publisher === null ? NOT_KNOWN : html`<code>${client.publisher}</code>`],
        ['The answer goes to', html`<code>${new URL(redirectUri).host}</code>${whoseAddress(redirectUri)}`],
      ])}
      <h2>What it gets</h2>
      ${describeServed(served)}
      <p>The operations of your connectors and of those of your enterprise, also of those that are installed later.</p>
      <p>
        It acts as you, with the credentials that are stored for these servers and connectors. It does not see the
        credentials. Tools that you do not allow stay refused, and those that need an approval still wait for it.
      </p>
      <p class="quiet small">
        It gets nothing else of this account, and ends after 90 days. You can disconnect it under Sign-ins and tokens.
      </p>
      <form method="post" action="${action}">
        <div class="actions">
          <button type="submit" class="primary" name="decision" value="connect">Connect it</button>
          <button type="submit" name="decision" value="deny">Deny</button>
        </div>
      </form>
      <p class="quiet small">Deny it unless you have just added this server in a client of yours.</p>
    </div>`;
  return layout('Connect an MCP client?', content, 'narrow');
}

const NOT_KNOWN = 'Not known: it has registered itself, under any name it likes';

function whoseAddress(redirectUri: string): Html | string {
  return isLoopbackRedirect(redirectUri) ? html` <span class="sub">a program on this computer</span>` : '';
}

function describeServed(servers: readonly ServedServer[]): Html {
  if (servers.length === 0) return html`<p>The tools of your remote MCP servers. You have none now.</p>`;
  return html`<p>The tools of your remote MCP servers, also of those that you add later. Now these are:</p>
    <ul>
      ${servers.map(({ name }) => html`<li><strong>${foreignText(name)}</strong></li>`)}
    </ul>`;
}

/** A request that is not valid. `back`: where the client learns that, if the client and its address are known. */
export function clientRefusedPage(message: string, back: string | null): Page {
  const content = html`${pageHeader({ title: 'This client cannot be connected' })}
    ${alert('bad', html`<strong>${message}</strong>`)}
    <p>Nothing was sent to it. You can close this page.</p>
    ${back === null ? '' : html`<p>${foreignLink(back, `Go back to ${new URL(back).host}`)}</p>`}`;
  return layout('Not connected', content, 'card');
}
