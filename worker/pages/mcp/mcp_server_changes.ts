import { html } from 'hono/html';
import type { UpgradeReply } from '../../../shared/wire/marketplace.ts';
import type { McpRevisionsReply, McpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { alert } from '../components/alert.ts';
import { removalEffects, type RemovalView } from '../bindings/removal_effects.ts';
import { confirmPage } from '../components/confirm_page.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, revisionField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { inputField, inputFields } from './install_fields.ts';
import { warningList } from './install_preview.ts';
import { layout, type Page } from '../frame/layout.ts';
import { freshnessWords } from './marketplace_words.ts';

/** A value before and after a change; null if there is none. */
export interface ChangedValue {
  readonly name: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What a person decides about a server. Its owner cannot change. */
type Configuration = Omit<McpRevisionsReply['items'][number]['configuration'], 'owner'>;

/** The differences between two configurations, each in one line. */
export function configurationChanges(before: Configuration, after: Configuration): readonly ChangedValue[] {
  const [old, fresh] = [linesOf(before), linesOf(after)];
  const names = [...new Set([...old.keys(), ...fresh.keys()])];
  return names
    .map((name) => ({ name, before: old.get(name) ?? null, after: fresh.get(name) ?? null }))
    .filter((change) => change.before !== change.after);
}

type Line = readonly [name: string, value: string | null];

function linesOf(configuration: Configuration): ReadonlyMap<string, string | null> {
  const { name, description, mode, version, command, url, transport, enabled, isolation, tools } = configuration;
  // Of every field: two configurations that differ must not look the same.
  const lines: { readonly [Field in keyof Configuration]: readonly Line[] } = {
    name: [['name', name]],
    description: [['description', description === '' ? null : description]],
    mode: [['kind', mode === 'local' ? 'a program' : 'a remote server']],
    registry_id: [['registry entry', configuration.registry_id]],
    version: [['version', version]],
    command: [['command', command.length === 0 ? null : commandText(command)]],
    url: [['URL', url]],
    transport: [['transport', transport]],
    env: prefixNames('variable', configuration.env),
    headers: prefixNames('header', configuration.headers),
    enabled: [['enabled', enabled ? 'yes' : 'no']],
    isolation: [['isolation', isolation]],
    tools: [
      ['tools that may be called', tools.allow === null ? 'all tools' : tools.allow.join(', ') || 'no tool'],
      ['tools that may not be called', tools.deny.length === 0 ? null : tools.deny.join(', ')],
      ['tools that need approval', tools.approval.length === 0 ? null : tools.approval.join(', ')],
    ],
  };
  return new Map(Object.values(lines).flat());
}

/** A word with a space is quoted: it is not the same as two words. */
function commandText(command: readonly string[]): string {
  return command.map((word) => (/^[^\s"]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

function prefixNames<Value>(
  kind: string,
  fields: Readonly<Record<string, Value>>,
): (readonly [name: string, value: Value])[] {
  return Object.entries(fields).map(([key, value]) => [`${kind} ${key}`, value]);
}

/** What an upgrade changes. */
function upgradeChanges({ from_version: from, to_version: to, diff }: UpgradeReply): readonly ChangedValue[] {
  return [
    ...(from === to ? [] : [{ name: 'version', before: from, after: to }]),
    ...(diff.command === null
      ? []
      : [{ name: 'command', before: commandText(diff.command.before), after: commandText(diff.command.after) }]),
    ...(diff.url === null ? [] : [{ name: 'URL', ...diff.url }]),
    ...prefixNames('variable', diff.env).map(([name, change]) => ({ name, ...change })),
    ...prefixNames('header', diff.headers).map(([name, change]) => ({ name, ...change })),
  ];
}

/** The differences, or why there are none. */
export function changePanel(changes: readonly ChangedValue[], nothing: Html = SAME): Html {
  return html`<section class="panel flush" aria-labelledby="changes-title">
    <div class="panel-head"><h2 id="changes-title">What changes</h2></div>
    ${changes.length === 0 ? nothing : changeTable(changes)}
  </section>`;
}

const SAME = emptyState({ title: 'Nothing changes', next: 'Both configurations are the same.' });

/** What a person agrees to is shown whole. */
const WHOLE = Number.POSITIVE_INFINITY;

/** Each changed value, before and after. */
export function changeTable(changes: readonly ChangedValue[], caption = 'What changes'): Html {
  return dataTable<ChangedValue>({
    caption,
    rows: changes,
    columns: [
      { title: 'What', cell: ({ name }) => foreignText(name, WHOLE) },
      {
        title: 'Before',
        cell: ({ before }) => (before === null ? 'none' : html`<del><code>${foreignText(before, WHOLE)}</code></del>`),
      },
      {
        title: 'After',
        cell: ({ after }) => (after === null ? 'removed' : html`<ins><code>${foreignText(after, WHOLE)}</code></ins>`),
      },
    ],
  });
}

interface UpgradeView {
  readonly server: McpServerRecord;
  readonly upgrade: UpgradeReply;
  readonly form: FormState;
  readonly nowMs: number;
}

/** The inputs that an upgrade needs, and non-secret ones that would otherwise become credentials. */
export function upgradeInputs({ preview, problems, diff }: Pick<UpgradeReply, 'preview' | 'problems' | 'diff'>) {
  const asked = new Set(problems.map(({ input }) => input));
  const values = [...Object.values(diff.env), ...Object.values(diff.headers)].map(({ after }) => after ?? '');
  const isLeft = (credential: string | null) => values.some((value) => value.endsWith(`/${credential}`));
  return preview.inputs.filter(({ name, secret, credential }) => asked.has(name) || (!secret && isLeft(credential)));
}

function versionWords({ from_version: from, to_version: to }: UpgradeReply): Html {
  if (from !== null && from === to)
    return html`${foreignText(from)} is installed, and is the registry’s newest release`;
  return html`${foreignText(from ?? 'No version')} is installed; the registry has ${foreignText(to ?? 'no version')}`;
}

/** Previews the changes of an upgrade. */
export function upgradePage({ server, upgrade, form, nowMs }: UpgradeView): Page {
  const changes = upgradeChanges(upgrade);
  const inputs = upgradeInputs(upgrade);
  const isNeeded = upgrade.available && (changes.length > 0 || inputs.length > 0);
  const title = isNeeded ? `Update ${server.name}` : `${server.name} is up to date`;
  const content = html`${pageHeader({
    title,
    lead: versionWords(upgrade),
    above: aboveOf(server),
  })}
  ${freshnessWords(upgrade, nowMs)}
  ${formRefusal(
    form,
    inputs.map((_, index) => inputField(index)),
  )}
  ${isNeeded ? html`${customisedAlert(upgrade)} ${warningList(upgrade.preview.warnings)}` : ''}
  ${isNeeded ? changePanel(changes, ONLY_INPUTS) : upToDate(server)}
  ${
    isNeeded
      ? html`<form class="panel stack" method="post" action="/mcp-servers/${server.id}/upgrade">
          <input type="hidden" name="version" value="${upgrade.entry_version ?? ''}" />
          ${inputFields(form, inputs)}
          <p class="quiet small">
            Credentials stay. Each machine asks for consent again if the command changes. Returning to the previous
            revision undoes the update.
          </p>
          <div class="actions">
            <button class="primary">Update</button>
            <a class="button" href="/mcp-servers/${server.id}">Keep it as it is</a>
          </div>
        </form>`
      : ''
  }`;
  return layout(title, content);
}

function upToDate({ id }: McpServerRecord): Html {
  const action = html`<a class="button" href="/mcp-servers/${id}">Back</a>`;
  return html`<div class="panel flush">
    ${emptyState({ title: 'There is nothing to update', next: 'A new install would give it the same configuration.', action })}
  </div>`;
}

const ONLY_INPUTS = emptyState({
  title: 'The configuration stays',
  next: 'The new version asks for the values below.',
});

function customisedAlert({ customised: isCustomised }: UpgradeReply): Html | string {
  if (!isCustomised) return '';
  return alert(
    'warn',
    html`<p>
      <strong>Its configuration was changed since it was installed.</strong> The update replaces the command.
    </p>`,
  );
}

/** Previews the changes of a rollback. */
export function rollbackPage(view: {
  readonly server: McpServerRecord;
  readonly revision: number;
  readonly changes: readonly ChangedValue[];
  readonly form: FormState;
}): Page {
  const { server, revision, changes, form } = view;
  const content = html`${pageHeader({ title: `Return to revision ${revision}?`, above: aboveOf(server) })}
  ${formRefusal(form, [])} ${changePanel(changes)}
  ${changes.length === 0 && form.refusal === null ? backTo(server) : rollbackForm(server, revision)}`;
  return layout(`Return to revision ${revision}`, content);
}

function rollbackForm({ id }: McpServerRecord, revision: number): Html {
  return html`<form class="actions" method="post" action="/mcp-servers/${id}/rollback">
    ${revisionField(String(revision))}
    <button class="primary">Return to it</button>
    <a class="button" href="/mcp-servers/${id}">Keep it as it is</a>
  </form>`;
}

/** The way on from a page that has nothing to decide. */
function backTo({ id, name }: McpServerRecord): Html {
  return html`<div class="actions"><a class="button" href="/mcp-servers/${id}">Back to ${name}</a></div>`;
}

/** A server to delete, and what that does. */
export interface ServerToDelete extends RemovalView {
  readonly server: McpServerRecord;
}

export function mcpServerDeletionPage({ server, preview, nowMs }: ServerToDelete, form: FormState): Page {
  return confirmPage({
    title: `Delete ${server.name}?`,
    consequence: html`This deletes the MCP server <code>${server.name}</code>.`,
    effects: removalEffects(preview, nowMs),
    name: server.name,
    action: `/mcp-servers/${server.id}/delete`,
    button: 'Delete it',
    hidden: {},
    above: aboveOf(server),
    form,
  });
}

export function mcpCredentialDeletionPage(server: McpServerRecord, name: string, form: FormState): Page {
  const isStored = server.credentials.some((each) => each.name === name && each.set);
  return confirmPage({
    title: `Remove ${name}?`,
    consequence: isStored
      ? html`The stored value is permanently deleted, and ${server.name} does not start without it.`
      : html`${server.name} has no stored value of this name, so there is nothing to remove.`,
    name,
    action: `/mcp-servers/${server.id}/credentials/delete`,
    button: 'Remove it',
    hidden: { name },
    above: aboveOf(server),
    form,
    isNeedless: !isStored,
  });
}

/** The link back to a server. */
export function aboveOf({ id, name }: McpServerRecord) {
  return { path: `/mcp-servers/${id}`, title: name };
}
