import { EFFECTS } from '../../shared/model/host_binding.ts';
import type { Role } from '../../shared/model/role.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import {
  approvalRuleInput,
  approvalRuleRecord,
  type ApprovalRuleRecord,
  approvalRulesPage,
  approversText,
} from '../../shared/wire/people/approval_rules.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { findGroup } from '../members/group_commands.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';
import { homeOf } from '../up/home.ts';

export interface AddRuleOptions {
  readonly connector?: string;
  readonly operation?: string;
  readonly server?: string;
  readonly tool?: string;
  readonly effect?: string[];
  readonly role?: Role;
  readonly group?: string;
  readonly persons?: string;
  readonly countRequester?: boolean;
}

const COLUMNS: readonly Column<ApprovalRuleRecord>[] = [
  { title: 'ID', cell: (row) => row.id },
  { title: 'ABOUT', cell: aboutText },
  { title: 'APPROVED BY', cell: approversText },
  {
    title: 'PEOPLE',
    cell: (row) => String(row.approvers),
    style: (row) => (row.approvers < row.persons ? 'red' : null),
  },
];

/** `svc approvals rules`: who approves what. */
export async function listRules({ context, options, print }: Call): Promise<undefined> {
  const items = await fetchAllPages(controlClient(context, options), '/v1/approval-rules', approvalRulesPage, {});
  const none =
    'No rules: a request is approved by the person whose agent asks, or by an admin for what the enterprise owns.';
  print.rows({ items }, items, COLUMNS, none);
}

/** What a rule is about: `acme/* delete-item (delete)`. */
function aboutText({ subject, name, action, effects }: ApprovalRuleRecord): string {
  const kind = subject === 'connector' ? 'connector' : 'MCP server';
  return `${kind} ${name} ${action}${effects === null ? '' : ` (${effects.join(', ')})`}`;
}

/** `svc approvals rules add`. */
export async function addRule(call: Call<AddRuleOptions>): Promise<undefined> {
  const { context, options, print } = call;
  requireOutside(call, homeOf(context, options), 'which may not change who approves what it asks for');
  const client = controlClient(context, options);
  const { group } = options;
  const groupId = group === undefined ? null : (await findGroup(client, group)).id;
  const parsed = approvalRuleInput.safeParse({ ...targetOf(options), ...whoOf(options), group_id: groupId });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new CliError(EXIT.usage, `${optionOf(issue?.path[0], options)} ${issue?.message ?? 'is not valid'}`);
  }
  const record = await client.call('POST', '/v1/approval-rules', approvalRuleRecord, { body: parsed.data });
  print.data(record, () => `added ${record.id}: ${toPrintable(`${aboutText(record)}, by ${approversText(record)}`)}\n`);
  if (print.person && record.approvers < record.persons) {
    print.note(
      `Too few people fit it: ${record.approvers} could approve a request of one of them, which needs ${record.persons}.`,
    );
  }
}

function targetOf({ connector, operation, server, tool, effect }: AddRuleOptions) {
  const isTool = server !== undefined || tool !== undefined;
  if (isTool && (connector ?? operation ?? effect) !== undefined) {
    throw new CliError(
      EXIT.usage,
      '--server and --tool do not go with --connector, --operation or --effect: add two rules',
    );
  }
  return isTool
    ? { subject: 'mcp_server', name: server, action: tool }
    : { subject: 'connector', name: connector, action: operation, effects: effect ?? null };
}

function whoOf({ role, persons, countRequester }: AddRuleOptions) {
  return {
    role: role ?? null,
    persons: persons === undefined ? 1 : Number(persons),
    excludes_requester: countRequester !== true,
  };
}

/** The option that a field of the input is given by. */
function optionOf(field: PropertyKey | undefined, { server, tool }: AddRuleOptions): string {
  const isTool = server !== undefined || tool !== undefined;
  if (field === 'name') return isTool ? '--server' : '--connector';
  if (field === 'action') return isTool ? '--tool' : '--operation';
  if (field === 'effects') return `--effect (${EFFECTS.join(', ')})`;
  if (field === 'excludes_requester') return '--count-requester';
  return field === 'persons' ? '--persons' : '--role';
}

/** `svc approvals rules rm ID`. */
export async function removeRule(call: Call): Promise<undefined> {
  const { context, options, args, print } = call;
  requireOutside(call, homeOf(context, options), 'which may not change who approves what it asks for');
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('DELETE', `/v1/approval-rules/${encodeURIComponent(id)}`);
  print.data({ id, removed: true }, () => `removed ${id}: what was allowed under it is over\n`);
}
