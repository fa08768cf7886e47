import { html } from 'hono/html';
import type { McpAuthorizeReply } from '../../../shared/wire/mcp/mcp_authorization.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { badge, type BadgeKind } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { aboveOf } from './mcp_server_changes.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { timeAgo } from '../components/time.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { clientSecretFields } from '../connectors/oauth_client_fields.ts';

type AuthorizationState = NonNullable<McpServerRecord['authorization']>['state'];

const STATES: Readonly<Record<AuthorizationState, readonly [BadgeKind, string, string]>> = {
  authorisation_required: ['warn', 'Not finished', 'A sign-in was begun and did not come to its end: begin again.'],
  ready: ['good', 'Signed in', 'The control plane keeps the sign-in and renews it; gateways are given access tokens.'],
  reauthorisation_required: ['bad', 'Taken back', 'Its provider does not take the sign-in any more: sign in again.'],
};

/** The sign-in of a remote server in words, and what can be done about it. */
export function signInPanel(server: McpServerRecord, nowMs: number, mayChange: boolean): Html {
  const { authorization } = server;
  const [kind, word] =
    authorization === null ? (['plain', 'Nobody is signed in'] as const) : STATES[authorization.state];
  return html`<section class="panel" id="sign-in" aria-labelledby="sign-in-title">
    <div class="panel-head">
      <h2 id="sign-in-title">Sign-in</h2>
      ${badge(kind, word)}
    </div>
    ${stateWords(authorization, nowMs)} ${mayChange ? signInActions(server) : ''}
  </section>`;
}

function signInActions({ id, name, authorization, health }: McpServerRecord): Html {
  const isAwaited = authorization === null ? health?.state === 'needs_authorisation' : authorization.state !== 'ready';
  const path = `/mcp-servers/${id}/authorize`;
  return html`<div class="actions">
      <form method="post" action="${path}">
        <button class="${isAwaited ? 'primary' : ''}">
          ${authorization?.state === 'ready' ? 'Sign in again' : 'Sign in'}
        </button>
      </form>
      <a class="button" href="${path}">With a client of your own</a>
      ${authorization === null ? '' : html`<a class="button danger" href="${path}/forget">Forget it</a>`}
    </div>
    <p class="quiet small">In a terminal: <code>svc mcp authorize ${name}</code></p>`;
}

function stateWords(authorization: McpServerRecord['authorization'], nowMs: number): Html {
  if (authorization === null) {
    return html`<p class="quiet">
      Needed only where the server asks for OAuth. It names where people sign in; the tokens stay in the vault.
    </p>`;
  }
  const { state, expires_at: ends, scopes } = authorization;
  return html`<p>${STATES[state][2]}</p>
    ${definitionList([
      ['Access token', state === 'ready' && ends !== null ? html`ends ${timeAgo(ends, nowMs)}` : null],
      ['Scopes', scopes.length === 0 ? null : html`<code>${foreignText(scopes.join(' '))}</code>`],
    ])}`;
}

/** Fields that are never given back to the browser. */
export const SIGN_IN_SECRETS = ['client_secret'];
const FIELDS = ['client_id', 'client_secret', 'client_authentication', 'scopes'];

export interface SignInView {
  readonly server: McpServerRecord;
  readonly form: FormState;
  /** Where the browser comes back to; null where that is not known. */
  readonly redirectUrl: string | null;
  /** Hosts of others that the server has people sign in with, to be agreed to. */
  readonly hosts: readonly string[];
}

/** The sign-in with a client that somebody registered by hand, and what was wrong with the one before. */
export function mcpSignInPage({ server, form, redirectUrl, hosts }: SignInView): Page {
  const content = html`${pageHeader({
      title: `Sign in to ${server.name}`,
      lead: 'Most servers register a client by themselves: then leave everything empty.',
      above: aboveOf(server),
    })}
    ${formRefusal(form, FIELDS)}
    <form class="panel stack" method="post" action="/mcp-servers/${server.id}/authorize">
      ${hosts.length === 0 ? '' : hostsQuestion(server, hosts)}
      ${
        redirectUrl === null
          ? ''
          : html`<p class="quiet small">Register a client of your own for this redirect URL:</p>
              ${codeBlock(redirectUrl)}`
      }
      ${textField(form, { name: 'client_id', label: 'Client id (optional)', hint: 'Empty: the one that is there, or one that is registered now.', isMono: true })}
      ${clientSecretFields(form)}
      ${textField(form, { name: 'scopes', label: 'Scopes (optional)', hint: 'With spaces between; empty: what the server asks for.', isMono: true })}
      <div class="actions">
        <button class="primary">${hosts.length === 0 ? 'Sign in' : 'Sign in there'}</button>
        <a class="button" href="/mcp-servers/${server.id}">Cancel</a>
      </div>
    </form>`;
  return layout(`Sign in to ${server.name}`, content, 'narrow');
}

/** What a person agrees to by sending the form. */
function hostsQuestion({ name, url }: McpServerRecord, hosts: readonly string[]): Html {
  const own = url !== null && URL.canParse(url) ? new URL(url).host : '';
  return html`<p>
      <strong
        >${name} is at <span class="mono">${foreignText(own)}</span>, and has you sign in with other hosts:</strong
      >
    </p>
    <ul>
      ${hosts.map((host) => html`<li class="mono">${foreignText(host)}</li>`)}
    </ul>
    <p>What you agree to there, this server may get. Go on only if that is where people sign in for it.</p>
    <input type="hidden" name="authorization_hosts" value="${hosts.join(' ')}" />`;
}

/**
 * The way to where people sign in. It is a link, for a form may not lead to another site, and it is shown before it is taken:
 * the server itself named that host, and a server of somebody's may name one that only looks like the right one.
 */
export function mcpSignInStartPage(server: McpServerRecord, reply: McpAuthorizeReply, nowMs: number): Page {
  const { authorization_url: link, authorization_server: issuer, redirect_uri: back, expires_at: ends } = reply;
  const { host } = new URL(link);
  const content = html`${pageHeader({ title: `Sign in to ${server.name}`, above: aboveOf(server) })}
    <div class="panel">
      <p>
        You are asked who you are at <strong class="mono">${foreignText(host)}</strong>. ${server.name} named it: go on
        if it is where you would sign in for this server.
      </p>
      ${definitionList([
        ['Provider', html`<code>${foreignText(issuer)}</code>`],
        ['For', html`<code>${foreignText(server.url?.split('?')[0] ?? '')}</code>`],
        ['Comes back to', html`<code>${back}</code>`],
        ['The link ends', timeAgo(ends, nowMs)],
      ])}
      <div class="actions">
        <a class="button primary" href="${link}" rel="noopener noreferrer nofollow">Continue to ${host}</a>
        <a class="button" href="/mcp-servers/${server.id}">Do not</a>
      </div>
    </div>`;
  return layout(`Sign in to ${server.name}`, content, 'narrow');
}

export function mcpSignInForgetPage(server: McpServerRecord, form: FormState): Page {
  return confirmPage({
    title: `Forget the sign-in to ${server.name}?`,
    consequence: html`Its tokens and its client are gone for good, and gateways are given none until somebody signs in
    again. The provider is told nothing: where it lists what may act for you, take it back there too.`,
    name: server.name,
    action: `/mcp-servers/${server.id}/authorize/forget`,
    button: 'Forget it',
    hidden: {},
    above: aboveOf(server),
    form,
  });
}
