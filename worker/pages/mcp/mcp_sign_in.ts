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
import { clientSecretFields, SIGNING_CLIENT } from '../connectors/oauth_client_fields.ts';

type AuthorizationState = NonNullable<McpServerRecord['authorization']>['state'];

const STATES: Readonly<Record<AuthorizationState, readonly [BadgeKind, string, string]>> = {
  authorisation_required: ['warn', 'Not finished', 'A sign-in was started but not completed: start again.'],
  ready: ['good', 'Signed in', 'The control plane keeps and renews the tokens; gateways receive access tokens.'],
  reauthorisation_required: ['bad', 'Revoked', 'Its provider no longer accepts the sign-in: sign in again.'],
};

/** The state of a remote server's sign-in, and its actions. */
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
      <a class="button" href="${path}">Use your own OAuth client</a>
      ${authorization === null ? '' : html`<a class="button danger" href="${path}/forget">Forget it</a>`}
    </div>
    <p class="quiet small">In a terminal: <code data-command>svc mcp authorize ${name}</code></p>`;
}

function stateWords(authorization: McpServerRecord['authorization'], nowMs: number): Html {
  if (authorization === null) {
    return html`<p class="quiet">
      Needed only if the server requires OAuth. The server names its provider; the tokens stay in the vault.
    </p>`;
  }
  const { state, expires_at: ends, scopes } = authorization;
  return html`<p>${STATES[state][2]}</p>
    ${definitionList([
      ['Access token', state === 'ready' && ends !== null ? html`expires ${timeAgo(ends, nowMs)}` : null],
      ['Scopes', scopes.length === 0 ? null : html`<code>${foreignText(scopes.join(' '))}</code>`],
    ])}`;
}

/** Fields that are never returned to the browser. */
export const SIGN_IN_SECRETS = ['client_secret'];
const FIELDS = ['client_id', 'client_secret', 'client_authentication', 'scopes'];

interface SignInView {
  readonly server: McpServerRecord;
  readonly form: FormState;
  /** The redirect URL; null if it is not known. */
  readonly redirectUrl: string | null;
  /** Foreign hosts of the sign-in that the user must confirm. */
  readonly hosts: readonly string[];
}

/** The sign-in with a manually registered client, and the problems of the last attempt. */
export function mcpSignInPage({ server, form, redirectUrl, hosts }: SignInView): Page {
  const content = html`${pageHeader({
      title: `Sign in to ${server.name}`,
      lead: 'Most servers register a client automatically: then leave all fields empty.',
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
      ${textField(form, { name: 'client_id', label: 'Client id (optional)', hint: 'Empty: the stored client, or a new one.', isMono: true })}
      ${clientSecretFields(form, [SIGNING_CLIENT])}
      ${textField(form, { name: 'scopes', label: 'Scopes (optional)', hint: 'Separated by spaces; empty: what the server requires.', isMono: true })}
      <div class="actions">
        <button class="primary">${hosts.length === 0 ? 'Sign in' : 'Sign in there'}</button>
        <a class="button" href="/mcp-servers/${server.id}">Cancel</a>
      </div>
    </form>`;
  return layout(`Sign in to ${server.name}`, content, 'narrow');
}

/** What the user confirms by submitting the form. */
function hostsQuestion({ name, url }: McpServerRecord, hosts: readonly string[]): Html {
  const own = url !== null && URL.canParse(url) ? new URL(url).host : '';
  return html`<p>
      <strong>${name} is at <span class="mono">${foreignText(own)}</span>, and its sign-in uses other hosts:</strong>
    </p>
    <ul>
      ${hosts.map((host) => html`<li class="mono">${foreignText(host)}</li>`)}
    </ul>
    <p>This server will get the access that you grant there. Continue only if its users are meant to sign in there.</p>
    <input type="hidden" name="authorization_hosts" value="${hosts.join(' ')}" />`;
}

/**
 * The link to the provider. It is a link because a form may not redirect to another site. It is shown first because the
 * server named that host, and a malicious server may name one that only looks right.
 */
export function mcpSignInStartPage(server: McpServerRecord, reply: McpAuthorizeReply, nowMs: number): Page {
  const { authorization_url: link, authorization_server: issuer, redirect_uri: back, expires_at: ends } = reply;
  const { host } = new URL(link);
  const content = html`${pageHeader({ title: `Sign in to ${server.name}`, above: aboveOf(server) })}
    <div class="panel">
      <p>
        You will sign in at <strong class="mono">${foreignText(host)}</strong>. ${server.name} named this host: continue
        if you trust it for this server.
      </p>
      ${definitionList([
        ['Provider', html`<code>${foreignText(issuer)}</code>`],
        ['For', html`<code>${foreignText(server.url?.split('?')[0] ?? '')}</code>`],
        ['Returns to', html`<code>${back}</code>`],
        ['The link expires', timeAgo(ends, nowMs)],
      ])}
      <div class="actions">
        <a class="button primary" href="${link}" rel="noopener noreferrer nofollow">Continue to ${host}</a>
        <a class="button" href="/mcp-servers/${server.id}">Cancel</a>
      </div>
    </div>`;
  return layout(`Sign in to ${server.name}`, content, 'narrow');
}

export function mcpSignInForgetPage(server: McpServerRecord, form: FormState): Page {
  return confirmPage({
    title: `Forget the sign-in to ${server.name}?`,
    consequence:
      server.authorization === null
        ? 'Nobody is signed in to it, so there is nothing to forget.'
        : html`Its tokens and its client are permanently deleted, and gateways receive none until somebody signs in
          again. The provider is not informed: revoke the access there too.`,
    name: server.name,
    action: `/mcp-servers/${server.id}/authorize/forget`,
    button: 'Forget it',
    hidden: {},
    above: aboveOf(server),
    form,
    isNeedless: server.authorization === null,
  });
}
