import { html } from 'hono/html';
import type { McpMode } from '../../../shared/model/mcp_server.ts';
import type { McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { type FormState, formRefusal, revisionField, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { tabs } from '../components/tabs.ts';
import { textArea } from '../components/text_area.ts';
import { ownServerSteps } from '../components/wizard_steps.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';
import { isolationField } from './isolation_field.ts';
import { toolFields } from './mcp_server.ts';
import { type ChangedValue, changePanel } from './mcp_server_changes.ts';
import { type OwnerChoice, ownerField } from '../bindings/owner_field.ts';

/** The fields of the form, in order. */
export const SERVER_FIELDS: readonly string[] = [
  'name',
  'program',
  'arguments',
  'env',
  'isolation',
  'url',
  'transport',
  'headers',
  'owner',
  'version',
  'description',
  'allow',
  'deny',
  'approval',
];
const MORE_FIELDS = ['version', 'description', 'allow', 'deny', 'approval'];

/** The form of a server that is in no registry. */
export function newServerPage(form: FormState, mode: McpMode, owners: OwnerChoice): Page {
  const content = html`${pageHeader({
      title: 'Register a server of your own',
      lead: 'A server that is in no registry: a program on your machine, or a remote server.',
      above: { path: '/mcp-servers', title: 'MCP servers' },
    })}
    ${ownServerSteps('Settings')}
    ${tabs('What it is', [
      { path: '/mcp-servers/new', title: 'A program on your machine', isCurrent: mode === 'local' },
      { path: '/mcp-servers/new?mode=remote', title: 'A remote server', isCurrent: mode === 'remote' },
    ])}
    ${formRefusal(form, SERVER_FIELDS)}
    <form class="panel stack" method="post" action="/mcp-servers">
      <input type="hidden" name="mode" value="${mode}" />
      ${nameField(form)} ${mode === 'local' ? localFields(form) : remoteFields(form)} ${ownerField(form, owners)}
      ${moreFields(form, 'Version, description, which tools may be called', toolFields(form))}
      <p class="quiet small">
        ${
          mode === 'local'
            ? 'Registering starts nothing: each machine asks for consent first.'
            : 'Registering calls nothing: a gateway on your machine calls it when a client uses it.'
        }
        You enter credentials in the next step.
      </p>
      <div class="actions">
        <button class="primary">Register</button> <a class="button" href="/mcp-servers">Cancel</a>
      </div>
    </form>`;
  return layout('Register a server', content, 'narrow');
}

interface EditView {
  readonly server: McpServerRecord;
  readonly form: FormState;
  /** What saving would change, if somebody changed the server meanwhile. */
  readonly changes: readonly ChangedValue[] | null;
}

/** The form that changes a server's configuration. */
export function editServerPage({ server, form, changes }: EditView): Page {
  const { id, name, mode, revision } = server;
  const content = html`${pageHeader({
      title: `Edit ${name}`,
      lead: 'The previous configuration is kept, and you can return to it.',
      above: { path: `/mcp-servers/${id}`, title: name },
    })}
    ${formRefusal(form, SERVER_FIELDS)} ${changes === null ? '' : changePanel(changes)}
    <form class="panel stack" method="post" action="/mcp-servers/${id}/edit">
      ${revisionField(String(revision))} ${nameField(form)} ${mode === 'local' ? localFields(form) : remoteFields(form)}
      ${moreFields(form, 'Version, description', '')}
      <p class="quiet small">
        ${
          mode === 'local'
            ? 'If the program, its arguments, variables, version or isolation change, each machine asks for consent again.'
            : 'A sign-in is for one URL: if you change the URL, it is deleted.'
        }
      </p>
      <div class="actions">
        <button class="primary">Save</button> <a class="button" href="/mcp-servers/${id}">Cancel</a>
      </div>
    </form>`;
  return layout(`Edit ${name}`, content, 'narrow');
}

function nameField(form: FormState): Html {
  return textField(form, {
    name: 'name',
    label: 'Name',
    hint: 'Prefix of the names of its tools.',
    placeholder: 'files',
    isRequired: true,
    isMono: true,
    maxLength: 48,
  });
}

function localFields(form: FormState): Html {
  return html`${textField(form, {
    name: 'program',
    label: 'Program',
    hint: 'A name or a path. Started without a shell.',
    placeholder: 'npx',
    isRequired: true,
    isMono: true,
  })}
  ${textArea(form, {
    name: 'arguments',
    label: 'Arguments',
    hint: html`One per line, exactly as the program receives it. Every program of the machine can read them: put secrets
    into variables. A line in double quotes is read as a JSON string.`,
    rows: 4,
    isMono: true,
    placeholder: '-y\n@modelcontextprotocol/server-filesystem@2026.8.31',
  })}
  ${textArea(form, {
    name: 'env',
    label: 'Variables',
    hint: html`One per line: <code>LOG_LEVEL=info</code>. A name alone, such as <code>API_KEY</code>, is a credential:
      you enter its value in the next step, and it is stored in the vault. Within a value, write a credential as
      <code>vault://mcp-servers/{id}/NAME</code> literally.`,
    rows: 3,
    isMono: true,
  })}
  ${isolationField(form)}`;
}

function remoteFields(form: FormState): Html {
  return html`${textField(form, {
    name: 'url',
    label: 'URL',
    hint: html`https. Write a credential in its query as <code>{NAME}</code>.`,
    placeholder: 'https://mcp.example.com/mcp',
    isRequired: true,
    isMono: true,
  })}
  ${selectField(form, {
    name: 'transport',
    label: 'Transport',
    choices: [
      { value: 'streamable-http', title: 'Streamable HTTP' },
      { value: 'sse', title: 'Server-sent events (older servers)' },
    ],
  })}
  ${textArea(form, {
    name: 'headers',
    label: 'Headers',
    hint: html`One per line: <code>Authorization: Bearer {API_TOKEN}</code>. A name in braces is a credential: you enter
      its value in the next step, and it is stored in the vault. A server with OAuth needs none.`,
    rows: 3,
    isMono: true,
  })}`;
}

function moreFields(form: FormState, title: string, tools: Html | string): Html {
  const problems = form.problems.map(({ field }) => field);
  const isUsed = MORE_FIELDS.some((name) => (form.values[name] ?? '') !== '' || problems.includes(name));
  return html`<details class="more" ${isUsed ? 'open' : ''}>
    <summary>${title}</summary>
    <div class="stack">
      ${textField(form, { name: 'version', label: 'Version (optional)', hint: 'For people; consent covers only this version.', isMono: true, maxLength: 128 })}
      ${textField(form, { name: 'description', label: 'Description (optional)', maxLength: 1_000 })} ${tools}
    </div>
  </details>`;
}
