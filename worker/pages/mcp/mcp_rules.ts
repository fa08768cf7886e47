import { html } from 'hono/html';
import type { McpRulesCheck, McpRulesRecord } from '../../../shared/wire/mcp/mcp_rules.ts';
import { alert, flash } from '../components/alert.ts';
import { checkboxField, TICKED } from '../components/checkbox_field.ts';
import { dataTable } from '../components/data_table.ts';
import { definitionList } from '../components/definition_list.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, radioField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import { textArea } from '../components/text_area.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

/** The fields of the form, in order. */
const RULE_FIELDS = ['from', 'sources', 'isolation', 'pinned_only', 'allow', 'deny', 'approval'];
const LIST = { rows: 3, isMono: true } as const;

interface McpRulesView {
  /** The control plane is on this machine, where there is only one person. */
  readonly isLocal: boolean;
  readonly rules: McpRulesRecord;
  readonly isAdmin: boolean;
  readonly form: FormState;
  /** The stored rules that the form was filled from, so that no concurrent change is lost. */
  readonly before: string;
  /** What the rules in the form would stop; null until somebody has asked. */
  readonly check: { readonly stopped: McpRulesCheck['items']; readonly rules: string } | null;
  readonly done: string | undefined;
}

/** The form with stored rules. */
export function rulesForm({ sources, isolation, pinned_only: isPinnedOnly, tools }: McpRulesRecord): FormState {
  const values = {
    from: sources === null ? 'any' : 'these',
    sources: (sources ?? []).join('\n'),
    isolation,
    ...(isPinnedOnly && { pinned_only: TICKED }),
    allow: (tools.allow ?? []).join('\n'),
    deny: tools.deny.join('\n'),
    approval: tools.approval.join('\n'),
  };
  return { values, problems: [], refusal: null };
}

/** What the enterprise says about the MCP servers of all its members; admins have the form. */
export function mcpRulesPage(view: McpRulesView): Page {
  const { isAdmin, rules, done } = view;
  const content = html`${pageHeader({
    title: 'Rules for MCP servers',
    lead: `Which servers may run, and which tools they may offer${view.isLocal ? '' : ', for every member of your enterprise'}. A server that breaks a rule is stopped.`,
  })}
  ${flash(done)}
  ${isAdmin ? rulesFormPanel(view) : html`${alert('info', 'Your enterprise’s admins change these rules.')} ${currentRules(rules)}`}`;
  return layout('Rules for MCP servers', content, 'narrow');
}

function listNames(names: readonly string[], none: string): string {
  return names.length === 0 ? none : names.join(', ');
}

function currentRules({ sources, isolation, pinned_only: isPinnedOnly, tools }: McpRulesRecord): Html {
  return html`<div class="panel">
    ${definitionList([
      ['Servers that may run', sources === null ? 'every one' : listNames(sources, 'none')],
      ['Local servers', isolation === 'container' ? 'in a container' : 'in a container or as a process'],
      ['Versions', isPinnedOnly ? 'exact ones only' : 'any'],
      ['Tools allowed', tools.allow === null ? 'every one' : listNames(tools.allow, 'none')],
      ['Tools denied', listNames(tools.deny, 'none')],
      ['Tools that need approval', listNames(tools.approval, 'none')],
    ])}
  </div>`;
}

function rulesFormPanel({ form, before, check, isLocal }: McpRulesView): Html {
  return html`${formRefusal(form, RULE_FIELDS)} ${check === null ? '' : stoppedPanel(check.stopped)}
    <form class="panel stack" method="post" action="/mcp-rules">
      <input type="hidden" name="before" value="${before}" />
      ${check === null ? '' : html`<input type="hidden" name="checked" value="${check.rules}" />`} ${sourceFields(form)}
      ${radioField(form, {
        name: 'isolation',
        label: 'Local servers run',
        choices: [
          { value: 'process', title: 'In a container or as a process of the user' },
          { value: 'container', title: 'In a container only' },
        ],
      })}
      ${checkboxField(form, {
        name: 'pinned_only',
        label: 'Only exact versions',
        hint: 'A command has to name an exact version, and an image its digest or a tag that is a version.',
      })}
      ${toolFields(form)}
      <div class="actions">
        ${check === null ? '' : html`<button class="primary" name="step" value="save">${isLocal ? 'Save' : 'Save for every member'}</button>`}
        <button ${check === null ? html`class="primary"` : ''} name="step" value="check">
          ${check === null ? 'Show what it stops' : 'Check again'}
        </button>
      </div>
    </form>`;
}

function sourceFields(form: FormState): Html {
  return html`${radioField(form, {
    name: 'from',
    label: 'Servers that may run',
    choices: [
      { value: 'any', title: 'Every server' },
      { value: 'these', title: 'Only these:' },
    ],
  })}
  ${textArea(form, {
    ...LIST,
    name: 'sources',
    label: 'Sources',
    hint: html`One per line: <code>npm:</code>, <code>pypi:</code>, <code>nuget:</code> or <code>oci:</code> and a
      package or an image, <code>host:</code> and the host of a remote server, or <code>registry:</code> and the name of
      a marketplace entry. <code>*</code> at the end covers every name that begins so, and for all of a kind write
      <code>npm:*</code>.`,
    placeholder: 'npm:@acme/*\nhost:*.acme.com',
  })}`;
}

function toolFields(form: FormState): Html {
  return html`<div class="thirds">
      ${textArea(form, { ...LIST, name: 'allow', label: 'Tools allowed', hint: 'Empty: every tool.' })}
      ${textArea(form, { ...LIST, name: 'deny', label: 'Tools denied', hint: 'Takes precedence.' })}
      ${textArea(form, { ...LIST, name: 'approval', label: 'Tools that need approval', hint: '* means every tool.' })}
    </div>
    <p class="quiet small">
      One name per line; <code>*</code> at the end matches any suffix. A server’s own policy can only be stricter.
    </p>`;
}

/** Names the servers that the rules in the form would stop, before anything is saved. */
function stoppedPanel(items: McpRulesCheck['items']): Html {
  if (items.length === 0) return alert('good', 'No server that exists would be stopped. Nothing is saved yet.');
  return html`<section class="panel flush" aria-labelledby="stopped-title">
    <div class="panel-head">
      <h2 id="stopped-title">${items.length === 1 ? 'One server' : `${items.length} servers`} would be stopped</h2>
      <span class="quiet small">Nothing is saved yet</span>
    </div>
    ${dataTable<McpRulesCheck['items'][number]>({
      caption: 'Servers that these rules would stop',
      rows: items,
      columns: [
        { title: 'Server', cell: ({ name }) => html`<strong>${name}</strong>` },
        {
          title: 'Of',
          cell: ({ owner, email }) => (owner === 'enterprise' ? 'the enterprise' : foreignText(email ?? 'a member')),
        },
        { title: 'Why', cell: ({ problem }) => foreignText(problem) },
      ],
    })}
  </section>`;
}
