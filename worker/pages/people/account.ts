import { html } from 'hono/html';
import type { MeReply } from '../../../shared/wire/account.ts';
import type { Page as ListPage } from '../../../shared/wire/primitives.ts';
import type { McpClientRecord } from '../../../shared/wire/mcp/mcp_clients.ts';
import type { SignInRecord } from '../../../shared/wire/sign_ins.ts';
import type { TokenRecord } from '../../../shared/wire/tokens.ts';
import { flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { clientWords } from './browser_words.ts';
import { pushPanel, type PushView } from './push_panel.ts';
import { tag } from '../components/tag.ts';

export const ACCOUNT_PAGE = { path: '/account', title: 'Sign-ins and tokens' };

interface AccountView {
  readonly me: MeReply;
  readonly signIns: ListPage<SignInRecord>;
  readonly tokens: ListPage<TokenRecord>;
  readonly mcpClients: ListPage<McpClientRecord>;
  /** Null where notifications are not offered. */
  readonly push: PushView | null;
  readonly isLocal: boolean;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The user's sign-ins: browsers, programs, personal tokens and MCP clients. */
export function accountPage(view: AccountView): Page {
  const { me, signIns, tokens, mcpClients, done, nowMs } = view;
  const content = html`${pageHeader({
      title: 'Sign-ins and tokens',
      lead: 'Everything that can act as you. End what you do not recognise.',
    })}
    ${flash(done)}
    <div class="panel">
      ${definitionList([
        ['Name', me.display_name],
        ['Email', me.email],
        ['Role', view.isLocal ? null : tag(me.role)],
        ['Your id', html`<code>${me.id}</code>`],
        ['Enterprise', view.isLocal ? null : html`<code>${me.enterprise_id}</code>`],
      ])}
    </div>
    <section class="panel flush" aria-labelledby="sign-ins-title">
      <div class="panel-head"><h2 id="sign-ins-title">Browsers and programs</h2></div>
      ${signIns.items.length === 0 ? emptyRow('Nothing is signed in as you.') : signInTable(signIns.items, nowMs)}
    </section>
    ${moreLink('sign_ins', signIns.next_cursor, 'More browsers and programs')}
    ${view.push === null ? '' : pushPanel(view.push, nowMs)}
    <section class="panel flush" aria-labelledby="tokens-title">
      <div class="panel-head">
        <h2 id="tokens-title">Personal tokens</h2>
        <a class="button compact" href="/account/tokens/new">Create a token</a>
      </div>
      ${tokens.items.length === 0 ? emptyRow('None. A token lets a script call the API with the scopes that you give it.') : tokenTable(tokens.items, nowMs)}
    </section>
    ${moreLink('tokens', tokens.next_cursor, 'More tokens')}
    ${view.isLocal ? '' : html`${mcpClientPanel(mcpClients, nowMs)} ${DELETION}`}`;
  return { ...layout('Sign-ins and tokens', content), registersWorker: view.push !== null };
}

function mcpClientPanel({ items, next_cursor: next }: AccountView['mcpClients'], nowMs: number): Html {
  return html`<section class="panel flush" aria-labelledby="mcp-clients-title">
      <div class="panel-head"><h2 id="mcp-clients-title">MCP clients</h2></div>
      ${items.length === 0 ? emptyRow(NO_MCP_CLIENTS) : mcpClientTable(items, nowMs)}
    </section>
    ${moreLink('mcp_clients', next, 'More MCP clients')}`;
}

const DELETION = html`<section class="panel stack" aria-labelledby="deletion-title">
  <h2 id="deletion-title">Delete your account</h2>
  <p class="quiet">With everything that is yours, and your ways to sign in. The next page shows what goes.</p>
  <div class="actions"><a class="button danger" href="/account/delete">Delete…</a></div>
</section>`;

const NO_MCP_CLIENTS = 'None. This control plane is an MCP server at /mcp: add it in a client, and that asks you here.';

function emptyRow(text: string): Html {
  return html`<div class="empty"><p>${text}</p></div>`;
}

function moreLink(name: string, cursor: string | null, title: string): Html | string {
  if (cursor === null) return '';
  return html`<div class="actions">
    <a class="button" href="${pathWith('/account', { [name]: cursor })}">${title}</a>
  </div>`;
}

function signInTable(signIns: readonly SignInRecord[], nowMs: number): Html {
  return dataTable<SignInRecord>({
    caption: 'Browsers and programs',
    rows: signIns,
    columns: [
      {
        title: 'Who',
        cell: ({ kind, client, current }) =>
          html`<strong>${kind === 'browser' ? 'Browser' : 'Program'}</strong>
            ${current ? badge('good', 'this one') : ''}
            <span class="sub" title="${client}">${clientWords(client, 'no name')}</span>`,
      },
      { title: 'Last seen', cell: ({ last_seen_at: seen }) => timeAgo(seen, nowMs) },
      { title: 'Signed in', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
      { title: 'Ends', cell: ({ expires_at: expires }) => timeAgo(expires, nowMs) },
      {
        title: 'Sign out',
        isActions: true,
        cell: ({ id, kind, client }) =>
          html`<a class="button compact danger" href="/account/sign-ins/${id}/end"
            >Sign out<span class="hidden-but-read"> the ${kind} ${client}</span></a
          >`,
      },
    ],
  });
}

function mcpClientTable(clients: readonly McpClientRecord[], nowMs: number): Html {
  return dataTable<McpClientRecord>({
    caption: 'MCP clients',
    rows: clients,
    columns: [
      {
        title: 'Client',
        cell: (client) =>
          html`<strong>${client.name === '' ? 'no name' : foreignText(client.name)}</strong> ${whereFrom(client)}`,
      },
      { title: 'Tokens renewed', cell: ({ last_used_at: used }) => timeAgo(used, nowMs) },
      { title: 'Connected', cell: ({ created_at: created }) => timeAgo(created, nowMs) },
      { title: 'Ends', cell: ({ expires_at: expires }) => timeAgo(expires, nowMs) },
      {
        title: 'Disconnect',
        isActions: true,
        cell: ({ id, name }) =>
          html`<a class="button compact danger" href="/account/mcp-clients/${id}/end"
            >Disconnect<span class="hidden-but-read"> ${name}</span></a
          >`,
      },
    ],
  });
}

/** Where its answer went; for a client of the provider, its id, and who connected it. */
function whereFrom({ connected_by: by, client_id: id, redirect_origin: origin }: McpClientRecord): Html {
  if (by === 'person') return html`<span class="sub mono">${origin}</span>`;
  return html`<span class="sub mono">${id}</span> <span class="sub">connected by your enterprise’s provider</span>`;
}

/** Asks for confirmation before an MCP client is disconnected. */
export function disconnectPage(client: McpClientRecord): Page {
  const { id, name } = client;
  const again =
    client.connected_by === 'person'
      ? 'To use it again, connect it again.'
      : 'The provider of your enterprise cannot connect it again until you have connected it yourself.';
  const title = 'Disconnect this MCP client?';
  const content = html`${pageHeader({ title, above: ACCOUNT_PAGE })}
    <div class="panel">
      <p>${name === '' ? 'It gave no name.' : foreignText(name)} ${whereFrom(client)}</p>
      <p>Its next call is refused. ${again}</p>
      <form class="actions" method="post" action="/account/mcp-clients/${id}/end">
        <button class="danger">Disconnect it</button>
        <a class="button" href="/account">Keep it</a>
      </form>
    </div>`;
  return layout(title, content, 'narrow');
}

/** Asks for confirmation before a browser or program is signed out. */
export function signOutPage({ id, kind, client, current }: SignInRecord): Page {
  const title = `Sign this ${kind} out?`;
  const content = html`${pageHeader({ title, above: ACCOUNT_PAGE })}
    <div class="panel">
      <p title="${client}">${clientWords(client, 'It gave no name.')}</p>
      <p>
        ${current ? 'This is the browser you are using: you will have to sign in again.' : 'Its next call is refused.'}
      </p>
      <form class="actions" method="post" action="/account/sign-ins/${id}/end">
        <button class="danger">Sign it out</button>
        <a class="button" href="/account">Keep it</a>
      </form>
    </div>`;
  return layout(title, content, 'narrow');
}

function tokenTable(tokens: readonly TokenRecord[], nowMs: number): Html {
  return dataTable<TokenRecord>({
    caption: 'Personal tokens',
    rows: tokens,
    columns: [
      {
        title: 'Token',
        cell: ({ name, id }) => html`<strong>${foreignText(name)}</strong> <span class="sub mono">${id}</span>`,
      },
      {
        title: 'For',
        cell: ({ scopes }) =>
          html`<div class="tags">${scopes.map((scope) => html`<span class="tag">${scope}</span> `)}</div>`,
      },
      { title: 'State', cell: (token) => tokenBadge(token, nowMs) },
      { title: 'Last used', cell: ({ last_used_at: used }) => (used === null ? 'never' : timeAgo(used, nowMs)) },
      { title: 'Ends', cell: ({ expires_at: expires }) => timeAgo(expires, nowMs) },
      {
        title: 'Revoke',
        isActions: true,
        cell: ({ id, name, revoked_at: revoked }) =>
          revoked !== null
            ? ''
            : html`<a class="button compact danger" href="/account/tokens/${id}/revoke"
                >Revoke<span class="hidden-but-read"> ${name}</span></a
              >`,
      },
    ],
  });
}

function tokenBadge({ revoked_at: revoked, expires_at: expires }: TokenRecord, nowMs: number): Html {
  if (revoked !== null) return badge('bad', 'revoked');
  return Date.parse(expires) <= nowMs ? badge('plain', 'expired') : badge('good', 'valid');
}
