import { Option } from 'commander';
import { APPROVAL_STATES } from '../../shared/wire/approvals.ts';
import type { ApprovalListOptions } from './approvals_actions.ts';
import { handle, type CommandLine } from '../command_line.ts';

// What the commands do is loaded when they are used: every other command starts faster.
const actions = () => import('./approvals_actions.ts');

/** `svc approvals ...`. */
export function addApprovalsCommands(line: CommandLine): void {
  const approvals = line.program.command('approvals').description('requests that wait for approval');
  const list = approvals
    .command('list')
    .alias('ls')
    .description('list the requests that wait for approval')
    .addOption(new Option('--state <state>', 'those in this state (default: pending)').choices(APPROVAL_STATES))
    .option('--all', 'in every state');
  handle<ApprovalListOptions>(line, list, async (call) => (await actions()).listApprovals(call));
  const show = approvals.command('show').description('show one request in full').argument('<id>');
  handle(line, show, async (call) => (await actions()).showApproval(call));
  const approve = approvals
    .command('approve')
    .description('approve this one request, once')
    .argument('<id>', 'as `svc approvals list` shows it');
  handle(line, approve, async (call) => (await actions()).decideApproval(call, 'approve'));
  const deny = approvals.command('deny').description('refuse it').argument('<id>', 'as `svc approvals list` shows it');
  handle(line, deny, async (call) => (await actions()).decideApproval(call, 'deny'));
  const watch = approvals
    .command('watch')
    .description('show requests and their decisions as they happen, until Ctrl-C');
  handle(line, watch, async (call) => (await import('./approvals_watch.ts')).watchApprovals(call));
}
