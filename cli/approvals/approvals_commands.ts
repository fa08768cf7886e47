import { type Command, Option } from 'commander';
import { EFFECTS } from '../../shared/model/host_binding.ts';
import { ROLES } from '../../shared/model/role.ts';
import { APPROVAL_STATES } from '../../shared/wire/approvals.ts';
import type { ApprovalListOptions, ApproveOptions } from './approvals_actions.ts';
import type { GrantListOptions } from './grants_actions.ts';
import type { AddRuleOptions } from './rules_actions.ts';
import { handle, type CommandLine } from '../command_line.ts';

// The actions are loaded on use, so that other commands start faster.
const actions = () => import('./approvals_actions.ts');
const grantActions = () => import('./grants_actions.ts');

const ruleActions = () => import('./rules_actions.ts');

/** `svc approvals ...`. */
export function addApprovalsCommands(line: CommandLine): void {
  const approvals = line.program.command('approvals').description('approve or deny requests that wait for a person');
  const list = approvals
    .command('list')
    .alias('ls')
    .description('list the requests that wait for approval')
    .addOption(new Option('--state <state>', 'only requests in this state (default: pending)').choices(APPROVAL_STATES))
    .option('--all', 'requests in every state');
  handle<ApprovalListOptions>(line, list, async (call) => (await actions()).listApprovals(call));
  const show = approvals.command('show').description('show one request in full').argument('<id>');
  handle(line, show, async (call) => (await actions()).showApproval(call));
  const approve = approvals
    .command('approve')
    .description('approve one request, once')
    .argument('<id>', 'as `svc approvals list` shows it')
    .option(
      '--for <time>',
      'also allow further requests of this operation with the same path, from the same session, whatever their query and body are: for "session" (8 hours at most), or a time such as 30m or 2h',
    )
    .option('--times <number>', 'with --for: at most this many requests, this one included (2 to 100)');
  handle<ApproveOptions>(line, approve, async (call) => (await actions()).approveRequest(call));
  const deny = approvals.command('deny').description('refuse it').argument('<id>', 'as `svc approvals list` shows it');
  handle(line, deny, async (call) => (await actions()).denyRequest(call));
  const grants = approvals.command('grants').description('list or revoke what was allowed in advance with --for');
  const listed = grants.command('list', { isDefault: true }).alias('ls').description('list the grants that are open');
  listed.option('--all', 'also those that have ended');
  handle<GrantListOptions>(line, listed, async (call) => (await grantActions()).listGrants(call));
  const revoke = grants
    .command('revoke')
    .description('end a grant: the next request asks again')
    .argument('<id>', 'as `svc approvals grants` shows it');
  handle(line, revoke, async (call) => (await grantActions()).revokeGrant(call));
  addRuleCommands(line, approvals);
  const watch = approvals
    .command('watch')
    .description('show requests and their decisions as they happen, until Ctrl-C');
  handle(line, watch, async (call) => (await import('./approvals_actions.ts')).watchApprovals(call));
}

/** `svc approvals rules ...`. */
function addRuleCommands(line: CommandLine, approvals: Command): void {
  const rules = approvals.command('rules').description('who approves what in your enterprise');
  const listed = rules
    .command('list', { isDefault: true })
    .alias('ls')
    .description('list the rules about who approves');
  handle(line, listed, async (call) => (await ruleActions()).listRules(call));
  const add = rules
    .command('add')
    .description('say who approves certain requests (admins); every rule about a request holds')
    .option('--connector <name>', 'requests of this connector, such as acme/items, or acme/* (default: every one)')
    .option('--operation <name>', 'only this operation; * at the end covers every name that begins so')
    .addOption(new Option('--effect <effect...>', 'only operations with one of these effects').choices(EFFECTS))
    .option('--server <name>', 'calls of tools of this MCP server, in place of a connector’s requests')
    .option('--tool <name>', 'only this tool')
    .addOption(new Option('--role <role>', 'approved by people with this role or one with more rights').choices(ROLES))
    .option('--group <group>', 'approved by people of this group: its id (grp_...) or its name')
    .option('--persons <number>', 'how many different persons: 1 or 2 (default: 1)')
    .option('--count-requester', 'with one person: the approval of the person whose agent asks counts too');
  handle<AddRuleOptions>(line, add, async (call) => (await ruleActions()).addRule(call));
  const remove = rules
    .command('rm')
    .description('remove a rule (admins)')
    .argument('<id>', 'as `svc approvals rules` shows it');
  handle(line, remove, async (call) => (await ruleActions()).removeRule(call));
}
