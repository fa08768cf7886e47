import { html } from 'hono/html';
import { mcpReference } from '../../../shared/mcp/references.ts';
import { mcpVaultPath } from '../../../shared/model/mcp_server.ts';
import type { StoredAuditEvent } from '../../../shared/wire/audit_events.ts';
import type { McpRevisionsReply, McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { codeBlock } from '../components/code_block.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignCommand } from '../components/foreign_command.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, revisionField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { pathWith } from '../components/pager.ts';
import { textArea } from '../components/text_area.ts';
import { timeAgo } from '../components/time.ts';
import type { Content, Html } from '../frame/html.ts';
import { warningList } from './install_preview.ts';
import { layout, type Page } from '../frame/layout.ts';
import { entryPath } from './marketplace_words.ts';
import { nameReferences } from './mcp_consent.ts';
import { machineSteps } from './mcp_credentials.ts';
import { logPanel } from './mcp_server_log.ts';
import { healthWords } from './mcp_server_words.ts';
import { signInPanel } from './mcp_sign_in.ts';

interface McpServerView {
  readonly server: McpServerRecord;
  readonly revisions: McpRevisionsReply['items'];
  /** The names of the credentials that a provider mints. */
  readonly minted: ReadonlySet<string>;
  /** The registry's current version, if it differs. */
  readonly newer: string | null;
  /** Recent reports of gateways, newest first. */
  readonly events: readonly StoredAuditEvent[];
  /** The form of the tools. */
  readonly tools: FormState;
  readonly done: string | undefined;
  readonly nowMs: number;
  /** Whether the caller may change it: only admins change the enterprise's servers. */
  readonly mayChange: boolean;
}

const SHOWN_REVISIONS = 20;

/** One server: its state, its command or URL, its credentials, and its tool policy. */
export function mcpServerPage(view: McpServerView): Page {
  const { server, done, nowMs, mayChange } = view;
  const content = html`${pageHeader({
      title: server.name,
      lead: foreignText(server.description),
      above: { path: '/mcp-servers', title: 'MCP servers' },
      actions: html`<a class="button" href="/mcp-servers/${server.id}/connect">Use it in a client</a>
        ${mayChange ? actions(server) : ''}`,
    })}
    ${flash(done)} ${mayChange ? newerWords(view) : adminsChange()} ${warningList(server.warnings)}
    <section class="panel" aria-labelledby="state-title">
      <h2 id="state-title">State</h2>
      ${definitionList([
        ['On your machines', healthWords(server, nowMs)],
        ['Version', versionWords(view)],
        [
          'Registry entry',
          server.registry_id === null
            ? null
            : html`<a class="mono" href="${entryPath(server.registry_id)}">${foreignText(server.registry_id)}</a>`,
        ],
        ['Owner', server.owner, 'hosted-only'],
        ['Id', html`<code>${server.id}</code>`],
        ['Changed', html`${timeAgo(server.updated_at, nowMs)}, revision ${server.revision}`],
      ])}
    </section>
    ${startedSection(server)} ${refusedHosts(server)} ${credentials(view)}
    ${server.mode === 'local' ? machineSteps(server) : signInPanel(server, nowMs, mayChange)} ${tools(view)}
    ${logPanel(server, view.events, nowMs)} ${history(view)}`;
  return layout(server.name, content);
}

function actions({ id, enabled }: McpServerRecord): Html {
  return html`<form method="post" action="/mcp-servers/${id}/enabled">
      <input type="hidden" name="enabled" value="${enabled ? 'false' : 'true'}" />
      <button>${enabled ? 'Disable' : 'Enable'}</button>
    </form>
    <a class="button" href="/mcp-servers/${id}/edit">Edit</a>
    <a class="button danger" href="/mcp-servers/${id}/delete">Delete</a>`;
}

function adminsChange(): Html {
  return alert('info', 'Your enterprise owns this server: its admins change it, and its members use it.');
}

function newerWords({ server, newer }: McpServerView): Html | string {
  if (newer === null) return '';
  return alert(
    'info',
    html`<p>
      <strong>A newer version is available:</strong> ${foreignText(newer)}.
      <a href="/mcp-servers/${server.id}/upgrade">Show what would change</a>
    </p>`,
  );
}

function versionWords({ server: { version, id, registry_id: registryId } }: McpServerView): Html {
  return html`${foreignText(version ?? 'none given')}
  ${registryId === null ? '' : html`<a class="small" href="/mcp-servers/${id}/upgrade">Check for another version</a>`}`;
}

function startedSection(server: McpServerRecord): Html {
  const { mode, command, url, transport, env, headers, isolation } = server;
  const isLocal = mode === 'local';
  return html`<section class="panel" aria-labelledby="started-title">
    <h2 id="started-title">${isLocal ? 'What is started' : 'What is called'}</h2>
    ${isLocal ? foreignCommand(command.map((word) => nameReferences(server.id, word))) : foreignCommand([nameReferences(server.id, url ?? '')])}
    ${definitionList([
      ['Transport', isLocal ? 'stdio' : transport],
      [
        'Isolation',
        isLocal ? (isolation === 'container' ? 'in a container or a sandbox' : 'a process of the user') : null,
      ],
      ['Variables', fieldList(server, env)],
      ['Headers', fieldList(server, headers)],
    ])}
  </section>`;
}

/** A host is part of the consent, so only its machine can allow it (decision 0080). */
function refusedHosts({ name, health }: McpServerRecord): Html | string {
  const hosts = health?.refused_hosts ?? [];
  if (hosts.length === 0) return '';
  return html`<section class="panel flush" id="refused-hosts" aria-labelledby="refused-hosts-title">
    <div class="panel-head">
      <h2 id="refused-hosts-title">Hosts that it was refused</h2>
      <span class="quiet small">The server chose these names</span>
    </div>
    <p class="padded">
      Its container reaches only the hosts that a person allowed. Allow one only if you know what the server does there.
      You can do so only on the machine itself, with the command beside the host.
    </p>
    ${dataTable<string>({
      caption: 'Refused hosts',
      rows: hosts,
      columns: [
        { title: 'Host', cell: (host) => html`<code>${foreignText(host)}</code>` },
        { title: 'To allow it', cell: (host) => codeBlock(`svc mcp allow ${name} ${host}`) },
      ],
    })}
  </section>`;
}

function fieldList(server: McpServerRecord, fields: Readonly<Record<string, string>>): Html | null {
  const entries = Object.entries(fields);
  if (entries.length === 0) return null;
  return html`<ul class="plain">
    ${entries.map(([name, value]) => html`<li><code>${foreignText(name)}: ${foreignText(nameReferences(server.id, value))}</code> ${setWords(server, value)}</li>`)}
  </ul>`;
}

/** Next to a value with references: whether each credential is stored. */
function setWords({ id, credentials: all }: McpServerRecord, value: string): Content {
  const named = all.filter(({ name }) => value.match(new RegExp(`${mcpReference(id, name)}(?!\\w)`)) !== null);
  return named.map(({ set }) => (set ? badge('good', 'Set') : badge('warn', 'Not set')));
}

function credentials({ server, minted, nowMs, mayChange }: McpServerView): Html {
  return html`<section class="panel flush" id="credentials" aria-labelledby="credentials-title">
    <div class="panel-head">
      <h2 id="credentials-title">Credentials</h2>
      <span class="quiet small">Stored in the vault; no page shows a value</span>
    </div>
    ${
      server.credentials.length === 0
        ? html`<p class="quiet padded">It uses no credentials.</p>`
        : dataTable<McpServerRecord['credentials'][number]>({
            caption: 'Credentials',
            rows: server.credentials,
            columns: [
              {
                title: 'Name',
                cell: ({ name, required }) =>
                  html`<code>${name}</code> ${required ? '' : html`<span class="quiet small">unused</span>`}`,
              },
              {
                title: 'Value',
                cell: ({ name, set }) =>
                  minted.has(name) ? mintedWords(server, name) : set ? badge('good', 'Set') : badge('warn', 'Not set'),
              },
              {
                title: 'Stored',
                cell: ({ updated_at: stored }) => (stored === null ? '' : timeAgo(stored, nowMs)),
              },
              {
                title: 'Actions',
                isActions: true,
                cell: (credential) => (mayChange ? credentialActions(server, credential, minted) : ''),
              },
            ],
          })
    }
  </section>`;
}

/** The value of a credential that a provider mints, with its page. */
function mintedWords({ id, owner }: McpServerRecord, name: string): Html {
  const page = pathWith('/secrets/source', { path: mcpVaultPath(id, name), owner });
  return html`${badge('good', 'Minted')}
    <a class="small" href="${page}">by its provider<span class="hidden-but-read">: ${name}</span></a>`;
}

function credentialActions(
  { id, owner }: McpServerRecord,
  { name, set }: McpServerRecord['credentials'][number],
  minted: ReadonlySet<string>,
): Html {
  const path = `/mcp-servers/${id}/credentials`;
  const source = pathWith('/secrets/sources/new', { path: mcpVaultPath(id, name), owner });
  const change = html`<a class="button compact" href="${path}?name=${name}"
      >${set ? 'Replace' : 'Store'}<span class="hidden-but-read"> ${name}</span></a
    >
    ${minted.has(name) ? '' : html`<a class="button compact" href="${source}">Mint<span class="hidden-but-read"> ${name}</span></a>`}`;
  if (!set) return html`<div class="actions">${change}</div>`;
  return html`<div class="actions">
    ${change}
    <a class="button compact danger" href="${path}/delete?name=${name}"
      >Remove<span class="hidden-but-read"> ${name}</span></a
    >
  </div>`;
}

/** The field names of the tools form. */
const TOOL_FIELDS = ['allow', 'deny', 'approval'] as const;
const TOOL_LIST = { rows: 3, isMono: true } as const;

/** The form with the stored policy. */
export function toolsForm({ tools: { allow, deny, approval } }: Pick<McpServerRecord, 'tools'>): FormState {
  return {
    values: { allow: (allow ?? []).join('\n'), deny: deny.join('\n'), approval: approval.join('\n') },
    problems: [],
    refusal: null,
  };
}

/** The fields of a tool policy. */
export function toolFields(form: FormState): Html {
  return html`<div class="thirds">
    ${textArea(form, { ...TOOL_LIST, name: 'allow', label: 'Allowed', hint: 'Empty: every tool.' })}
    ${textArea(form, { ...TOOL_LIST, name: 'deny', label: 'Denied', hint: 'Takes precedence; clients do not see these.' })}
    ${textArea(form, { ...TOOL_LIST, name: 'approval', label: 'Needs approval', hint: 'Each call waits for an approval. * means every tool.' })}
  </div>`;
}

function tools({ server, tools: form, mayChange }: McpServerView): Html {
  return html`<section class="panel" id="tools" aria-labelledby="tools-title">
    <h2 id="tools-title">Tools</h2>
    <p><a href="/mcp-servers/${server.id}/tools">Show its tools, and those that wait</a></p>
    <p class="quiet">
      One name per line; <code>*</code> at the end matches any suffix. Every call is in the audit log.
    </p>
    ${formRefusal(form, TOOL_FIELDS)}
    <form class="stack" method="post" action="/mcp-servers/${server.id}/tools">
      ${revisionField(String(server.revision))} ${toolFields(form)}
      ${mayChange ? html`<div class="actions"><button>Save the tools</button></div>` : ''}
    </form>
  </section>`;
}

function history({ server, revisions, nowMs, mayChange }: McpServerView): Html | string {
  if (revisions.length < 2) return '';
  return html`<section class="panel flush" aria-labelledby="history-title">
    <div class="panel-head"><h2 id="history-title">Earlier configurations</h2></div>
    ${dataTable<McpRevisionsReply['items'][number]>({
      caption: 'Configurations, newest first',
      rows: revisions.slice(0, SHOWN_REVISIONS),
      columns: [
        { title: 'Revision', cell: ({ revision }) => html`<span class="number">${revision}</span>` },
        { title: 'Version', cell: ({ configuration }) => foreignText(configuration.version ?? '') },
        { title: 'Made', cell: ({ created_at: made }) => timeAgo(made, nowMs) },
        {
          title: 'Return',
          isActions: true,
          cell: ({ revision }) => {
            if (revision === server.revision) return badge('accent', 'In force');
            return mayChange ? returnLink(server, revision) : '';
          },
        },
      ],
    })}
  </section>`;
}

function returnLink({ id }: McpServerRecord, revision: number): Html {
  return html`<a class="button compact" href="/mcp-servers/${id}/rollback?revision=${revision}"
    >Return to it<span class="hidden-but-read">: revision ${revision}</span></a
  >`;
}
