import type { GatewayEntry } from '../../../shared/mcp/client_links.ts';
import { html } from 'hono/html';
import { type McpServerRecord, listMissingCredentials } from '../../../shared/wire/mcp/mcp_servers.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { installSteps, type OwnServerStep, ownServerSteps } from '../components/wizard_steps.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { clientsSection } from './mcp_clients.ts';
import { consentPanel } from './mcp_consent.ts';
import { signInPanel } from './mcp_sign_in.ts';

/** A credential to fill in. */
export interface AskedCredential {
  readonly name: string;
  /** The publisher's text. */
  readonly description: string;
  readonly isSet: boolean;
  readonly isRequired: boolean;
}

interface CredentialsView {
  readonly server: McpServerRecord;
  readonly asked: readonly AskedCredential[];
  /** True if it is a step of an install. */
  readonly isInstall: boolean;
  readonly form: FormState;
  readonly done: string | undefined;
}

/** The name of a credential's field. */
export function credentialField(name: string): string {
  return `credential_${name}`;
}

/** The third step of an install, and the form that replaces a value. Values are stored in the vault and never shown. */
export function mcpCredentialsPage({ server, asked, isInstall, form, done }: CredentialsView): Page {
  const path = `/mcp-servers/${server.id}`;
  const names = asked.map(({ name }) => credentialField(name));
  const content = html`${pageHeader({
    title: isInstall ? 'Credentials' : `Credentials of ${server.name}`,
    lead: 'Values are stored in the vault. No page shows them again, and no client’s configuration contains them.',
    above: { path, title: server.name },
  })}
  ${isInstall ? stepsOf(server, 'Credentials') : ''} ${flash(done)} ${formRefusal(form, names)}
  ${
    asked.length === 0
      ? html`<div class="panel flush">
          ${emptyState({ title: 'No value is missing', next: 'The page of the server lists its credentials. There, each can be replaced.', action: onward(server, isInstall, false) })}
        </div>`
      : html`<form class="panel stack" method="post" action="${path}/credentials">
          <input type="hidden" name="install" value="${isInstall ? '1' : ''}" />
          ${asked.map((credential) => field(form, credential))}
          <div class="actions"><button class="primary">Store</button> ${onward(server, isInstall, true)}</div>
        </form>`
  }`;
  return layout(`Credentials of ${server.name}`, content, 'narrow');
}

function field(form: FormState, { name, description, isSet, isRequired }: AskedCredential): Html {
  const state = isSet ? 'A value is stored; a new one replaces it.' : 'Leave it empty to store it later.';
  return textField(form, {
    name: credentialField(name),
    label: isRequired ? name : `${name} (optional)`,
    hint: html`${foreignText(description)} ${description === '' ? '' : html`<br />`}${state}`,
    isSecret: true,
    isMono: true,
  });
}

function onward({ id, name }: McpServerRecord, isInstall: boolean, isAsked: boolean): Html {
  if (!isInstall)
    return html`<a class="button" href="/mcp-servers/${id}">${isAsked ? 'Cancel' : `Back to ${name}`}</a>`;
  return html`<a class="button" href="/mcp-servers/${id}/connect">${isAsked ? 'Later' : 'Continue'}</a>`;
}

interface ConnectView {
  readonly entry: GatewayEntry;
  readonly server: McpServerRecord;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the caller may change the server. */
  readonly mayChange: boolean;
}

/** The last step: the commands to type on a machine, because nothing runs there without consent given there. */
export function mcpConnectPage({ server, entry, done, nowMs, mayChange }: ConnectView): Page {
  const lacking = listMissingCredentials(server);
  const heading = `${server.name} is ${server.registry_id === null ? 'registered' : 'installed'}`;
  const path = `/mcp-servers/${server.id}`;
  const content = html`${pageHeader({
      title: heading,
      lead:
        server.mode === 'local'
          ? 'It runs on a machine once you have consented there.'
          : 'The gateway on your machine calls it.',
      above: { path: '/mcp-servers', title: 'MCP servers' },
    })}
    ${stepsOf(server, 'Use it')} ${flash(done)} ${lacking.length === 0 ? '' : lackingWords(server, lacking)}
    ${server.mode === 'local' ? consentPanel(server) : signInPanel(server, nowMs, mayChange)} ${clientsSection(entry)}
    <div class="actions">
      <a class="button primary" href="${path}">Show ${server.name}</a>
      <a class="button" href="/marketplace">Marketplace</a>
    </div>`;
  return layout(heading, content, 'narrow');
}

/** A manually registered server was reviewed by the user who typed it. */
function stepsOf({ registry_id: registryId }: McpServerRecord, step: OwnServerStep): Html {
  return registryId === null ? ownServerSteps(step) : installSteps(step);
}

function lackingWords({ id }: McpServerRecord, names: readonly string[]): Html {
  return alert(
    'warn',
    html`<p>
      ${badge('warn', 'Not set')} It does not start without ${names.map((name) => html`<code>${name}</code> `)}
      <a href="/mcp-servers/${id}/credentials?install=1">Store ${names.length === 1 ? 'it' : 'them'}</a>
    </p>`,
  );
}

/** The commands to type on each machine for a local server. */
export function machineSteps({ name }: Pick<McpServerRecord, 'name'>): Html {
  return html`<section class="panel" aria-labelledby="machine-title">
    <h2 id="machine-title">On each machine, once</h2>
    <p>This shows the command and asks for consent. You can consent only on the machine itself.</p>
    ${codeBlock(`svc mcp consent ${name}`)}
  </section>`;
}
