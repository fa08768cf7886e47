import { Option } from 'commander';
import { APPROVAL_STATES } from '../../shared/wire/approvals.ts';
import type { ApprovalListOptions } from './approvals_actions.ts';
import { handle, type CommandLine } from '../command_line.ts';

// The actions are loaded on use, so that other commands start faster.
const actions = () => import('./approvals_actions.ts');

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
    .argument('<id>', 'as `svc approvals list` shows it');
  handle(line, approve, async (call) => (await actions()).decideApproval(call, 'approve'));
  const deny = approvals.command('deny').description('refuse it').argument('<id>', 'as `svc approvals list` shows it');
  handle(line, deny, async (call) => (await actions()).decideApproval(call, 'deny'));
  const watch = approvals
    .command('watch')
    .description('show requests and their decisions as they happen, until Ctrl-C');
  handle(line, watch, async (call) => (await import('./approvals_actions.ts')).watchApprovals(call));
}
