import { meReply } from '../../shared/wire/account.ts';
import { membershipsReply, type MembershipRecord } from '../../shared/wire/enterprise.ts';
import { createdInvitation, invitationsPage, type InvitationRecord } from '../../shared/wire/invitations.ts';
import { departureReply, departureText, type MemberRecord, membersPage } from '../../shared/wire/members.ts';
import { controlClient } from '../clients.ts';
import { deleteEnterprise } from './delete_enterprise.ts';
import type { DeleteOptions } from './export_and_confirm.ts';
import { addJoinCommands, addJoinDecisions } from './join_commands.ts';
import { addSettingsCommands } from './enterprise_commands.ts';
import { findMember, putMember, resumeMember, suspendMember } from './suspend_member.ts';
import { showUsage } from './usage_command.ts';
import { useEnterprise } from './use_enterprise.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';

interface LeaveOptions {
  readonly yes?: boolean;
}

interface InviteOptions {
  readonly role?: string;
  readonly days?: string;
}

/** `svc members ...` and `svc enterprise ...`. */
export function addMembersCommands(line: CommandLine): void {
  const members = line.program.command('members').description('list, invite and remove the people of your enterprise');
  handle(line, members.command('list').alias('ls').description('list the people of your enterprise'), listMembers);
  const invite = members
    .command('invite')
    .description('invite an address: prints a link that works once, for a person who has proven the address')
    .argument('<address>', 'its email address')
    .option('--role <role>', 'member, admin or owner (default: member)')
    .option('--days <days>', 'days until it ends, up to 30 (default: 7)');
  handle<InviteOptions>(line, invite, inviteAddress);
  const listed = members.command('invitations').description('list invitations, without their links');
  handle(line, listed, listInvitations);
  const revoke = members
    .command('revoke')
    .description('revoke an open invitation')
    .argument('<id>', 'its id (inv_...)');
  handle(line, revoke, revokeInvitation);
  addJoinDecisions(line, members);
  const role = members
    .command('role')
    .description('give a member another role; to hand an enterprise over, make another owner, then change your own')
    .argument('<id>', 'its id (usr_...)')
    .argument('<role>', 'member, admin or owner');
  handle(line, role, changeRole);
  const suspend = members
    .command('suspend')
    .description(
      'sign a member out everywhere, and end its sidecars, tokens and grants for good; what is its own stays',
    )
    .argument('<id>', 'its id (usr_...)')
    .option('--yes', 'do not ask');
  handle<LeaveOptions>(line, suspend, suspendMember);
  const resume = members
    .command('resume')
    .description('let a suspended member sign in again')
    .argument('<id>', 'its id (usr_...)');
  handle(line, resume, resumeMember);
  const remove = members
    .command('remove')
    .description('remove a member: its own secrets, bindings, sidecars and tokens go with it')
    .argument('<id>', 'its id (usr_...)')
    .option('--yes', 'do not ask');
  handle<LeaveOptions>(line, remove, removeMember);
  addEnterpriseCommands(line);
}

function addEnterpriseCommands(line: CommandLine): void {
  const enterprise = line.program
    .command('enterprise')
    .description('your enterprises and their settings: list, switch, set up sign-in, ask to join, leave');
  const list = enterprise
    .command('list')
    .alias('ls')
    .description('list your enterprises; * is the one of this sign-in');
  handle(line, list, listEnterprises);
  const use = enterprise
    .command('use')
    .description('move this sign-in, and the sidecar of this machine, to another enterprise of yours')
    .argument('<id>', 'its id (ent_...) or its slug');
  handle(line, use, useEnterprise);
  addSettingsCommands(line, enterprise);
  addJoinCommands(line, enterprise);
  const usage = enterprise
    .command('usage')
    .description('show how much you keep of what you may keep; for admins also of the enterprise');
  handle(line, usage, showUsage);
  const leave = enterprise
    .command('leave')
    .description('leave the enterprise of this sign-in: your own secrets, bindings, sidecars and tokens go with you')
    .option('--yes', 'do not ask');
  handle<LeaveOptions>(line, leave, leaveEnterprise);
  const deletion = enterprise
    .command('delete')
    .description('delete the enterprise of this sign-in for all of its members, after an export')
    .option('--export <file>', 'new file for the export (default: svc-export-SLUG.ndjson)', '')
    .option('--no-export', 'export nothing')
    .option('--yes', 'do not ask');
  handle<DeleteOptions>(line, deletion, deleteEnterprise);
}

async function listMembers(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const members = await fetchAllPages(controlClient(context, options), '/v1/members', membersPage, {});
  const columns: readonly Column<MemberRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ display_name: name }) => name },
    { title: 'EMAIL', cell: ({ email }) => email ?? '-' },
    { title: 'ROLE', cell: ({ role }) => role },
    { title: 'STATE', cell: ({ suspended_at: suspended }) => (suspended === null ? 'active' : 'suspended') },
  ];
  print.rows(members, members, columns, 'no members');
}

async function inviteAddress(call: Call<InviteOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const body = {
    email: call.args[0] ?? '',
    ...(options.role !== undefined && { role: options.role }),
    ...(options.days !== undefined && { expires_in_days: daysOf(options.days) }),
  };
  const created = await controlClient(context, options).call('POST', '/v1/invitations', createdInvitation, { body });
  const { id, email, role, mailed, expires_at: expires } = created;
  if (!print.json) {
    print.note(`${id} invites ${email} as ${role}, until ${expires}.`);
    print.note(`${mailed ? 'The link was mailed' : 'Pass the link on yourself'}; it is shown only once:`);
  }
  print.line(created, created.url);
}

function daysOf(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--days is ${JSON.stringify(text)}: use a number of days, such as 7`);
}

async function listInvitations(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const invitations = await fetchAllPages(controlClient(context, options), '/v1/invitations', invitationsPage, {});
  const columns: readonly Column<InvitationRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'FOR', cell: ({ email }) => email },
    { title: 'ROLE', cell: ({ role }) => role },
    { title: 'STATE', cell: ({ state }) => state },
    { title: 'ENDS', cell: ({ expires_at: expires }) => expires.slice(0, 10) },
  ];
  print.rows(invitations, invitations, columns, 'no invitations: create one with "svc members invite ADDRESS"');
}

async function revokeInvitation(call: Call): Promise<undefined> {
  const id = call.args[0] ?? '';
  await controlClient(call.context, call.options).callEmpty('DELETE', `/v1/invitations/${encodeURIComponent(id)}`);
  call.print.line({ revoked: id }, `revoked ${id}`);
}

async function listEnterprises(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const { items } = await controlClient(context, options).call('GET', '/v1/enterprises', membershipsReply);
  const columns: readonly Column<MembershipRecord>[] = [
    { title: '', cell: ({ current }) => (current ? '*' : '') },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'ROLE', cell: ({ role }) => role },
    { title: 'ID', cell: ({ id }) => id },
  ];
  print.rows(items, items, columns, 'no enterprises');
}

async function changeRole(call: Call): Promise<undefined> {
  const [id = '', role = ''] = call.args;
  const client = controlClient(call.context, call.options);
  const member = await findMember(client, id);
  const changed = await putMember(client, member, { role });
  call.print.line(changed, `${changed.display_name} is ${changed.role}`);
}

async function removeMember(call: Call<LeaveOptions>): Promise<undefined> {
  const id = call.args[0] ?? '';
  await depart(call, id, { typed: id, question: `Type ${id} to remove the member: ` });
  call.print.line({ removed: id }, `removed ${id}`);
}

async function leaveEnterprise(call: Call<LeaveOptions>): Promise<undefined> {
  const { id, enterprise_id: enterpriseId } = await controlClient(call.context, call.options).call(
    'GET',
    '/v1/me',
    meReply,
  );
  await depart(call, id, { typed: enterpriseId, question: `Type ${enterpriseId} to leave this enterprise: ` });
  call.print.line({ left: enterpriseId }, `left ${enterpriseId}: svc logout forgets the sign-in here`);
}

/** Shows what leaves, asks for the name unless told not to, and has it go. */
async function depart(
  { context, options, print }: Call<LeaveOptions>,
  id: string,
  { typed, question }: { readonly typed: string; readonly question: string },
): Promise<void> {
  const client = controlClient(context, options);
  const path = `/v1/members/${encodeURIComponent(id)}`;
  const departure = await client.call('GET', `${path}/departure`, departureReply);
  print.note(`Deleted or revoked: ${departureText(departure)}.`);
  if (options.yes !== true) {
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    if ((await askOrStop(context, question)).trim() !== typed) {
      throw new CliError(EXIT.failed, `that is not ${typed}: nothing was changed`);
    }
  }
  await client.callEmpty('DELETE', path);
}
