import { html } from 'hono/html';
import { EFFECTS } from '../../../shared/model/host_binding.ts';
import { type ApprovalRuleRecord, approversText } from '../../../shared/wire/people/approval_rules.ts';
import type { GroupRecord } from '../../../shared/wire/sharing/groups.ts';
import { alert, flash } from '../components/alert.ts';
import { badge } from '../components/badge.ts';
import { checkboxField } from '../components/checkbox_field.ts';
import { dataTable } from '../components/data_table.ts';
import { emptyState } from '../components/empty_state.ts';
import { foreignText } from '../components/foreign_text.ts';
import { type FormState, formRefusal, radioField, selectField, textField } from '../components/form_field.ts';
import { pageHeader } from '../components/page_header.ts';
import type { Html } from '../frame/html.ts';
import { layout, type Page } from '../frame/layout.ts';

interface RulesView {
  readonly rules: readonly ApprovalRuleRecord[];
  readonly groups: readonly GroupRecord[];
  readonly isAdmin: boolean;
  readonly form: FormState;
  readonly done: string | undefined;
}

/** The fields of the form, in order. */
const RULE_FIELDS = ['subject', 'name', 'action', 'effect', 'who', 'persons', 'counts_requester'];

/** Who approves what; admins have the form. */
export function approvalRulesPage({ rules, groups, isAdmin, form, done }: RulesView): Page {
  const content = html`${pageHeader({
      title: 'Rules about approvals',
      lead: 'Who approves what, in your enterprise. Every rule about a request holds. Without one the person whose agent asks approves it, or an admin if the connector or server is the enterprise’s.',
    })}
    ${flash(done)}
    <div class="panel flush">${rules.length === 0 ? nothing() : table(rules, isAdmin)}</div>
    ${isAdmin ? newRuleForm(form, groups) : alert('info', 'Your enterprise’s admins change these rules.')}`;
  return layout('Rules about approvals', content);
}

function nothing(): Html {
  return emptyState({
    title: 'No rules',
    next: 'An admin says here who approves what. In a terminal:',
    command: 'svc approvals rules',
  });
}

function table(rules: readonly ApprovalRuleRecord[], isAdmin: boolean): Html {
  return dataTable<ApprovalRuleRecord>({
    caption: 'Rules about approvals',
    rows: rules,
    key: ({ id }) => id,
    columns: [
      { title: 'About', cell: aboutCell },
      { title: 'Approved by', cell: (rule) => foreignText(approversText(rule)) },
      { title: 'People', cell: peopleCell },
      { title: 'Remove', isActions: true, cell: (rule) => (isAdmin ? removeForm(rule) : '') },
    ],
  });
}

function aboutCell({ subject, name, action, effects }: ApprovalRuleRecord): Html {
  const kind = subject === 'connector' ? 'Connector' : 'MCP server';
  const which = effects === null ? '' : `, effect ${effects.join(' or ')}`;
  return html`<span class="mono">${foreignText(`${name} ${action}`)}</span><span class="sub">${kind}${which}</span>`;
}

function peopleCell({ approvers, persons }: ApprovalRuleRecord): Html | string {
  return approvers >= persons
    ? String(approvers)
    : html`${badge('bad', String(approvers))}<span class="sub">too few for a request of one of them</span>`;
}

function removeForm({ id, name, action }: ApprovalRuleRecord): Html {
  return html`<form method="post" action="/approval-rules/${id}/remove" class="actions">
    <button class="compact danger">Remove<span class="hidden-but-read"> ${name} ${action}</span></button>
  </form>`;
}

function newRuleForm(form: FormState, groups: readonly GroupRecord[]): Html {
  const roles = [
    { value: 'admin', title: 'Admins and owners' },
    { value: 'owner', title: 'Owners' },
    { value: 'member', title: 'Everybody in the enterprise' },
  ];
  const ofGroups = groups.map(({ id, name }) => ({ value: id, title: `Group ${name}` }));
  return html`<form class="panel stack" method="post" action="/approval-rules" aria-label="New rule">
    ${formRefusal(form, RULE_FIELDS)}
    ${radioField(form, {
      name: 'subject',
      label: 'About',
      choices: [
        { value: 'connector', title: 'Operations of a connector' },
        { value: 'mcp_server', title: 'Tools of an MCP server' },
      ],
    })}
    ${textField(form, { name: 'name', label: 'Connector or server', isMono: true, maxLength: 256, placeholder: 'acme/*', hint: 'Its name. * at the end covers every name that begins so; * alone is every one.' })}
    ${textField(form, { name: 'action', label: 'Operation or tool', isMono: true, maxLength: 256, placeholder: 'delete-*' })}
    ${selectField(form, { name: 'effect', label: 'Effect', hint: 'Of operations; tools have none.', choices: [{ value: '', title: 'Every effect' }, ...EFFECTS.map((value) => ({ value, title: value }))] })}
    ${selectField(form, { name: 'who', label: 'Approved by', choices: [...roles, ...ofGroups] })}
    ${radioField(form, {
      name: 'persons',
      label: 'How many',
      choices: [
        { value: '1', title: 'One person' },
        { value: '2', title: 'Two different persons' },
      ],
    })}
    ${checkboxField(form, {
      name: 'counts_requester',
      label: 'Also the person whose agent asks',
      hint: 'Only with one person: of two, the one who asks is never one.',
    })}
    <div class="actions"><button class="primary">Add the rule</button></div>
  </form>`;
}
