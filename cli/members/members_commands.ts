import { membershipsReply, type MembershipRecord } from '../../shared/wire/enterprise.ts';
import { createdInvitation, invitationsPage, type InvitationRecord } from '../../shared/wire/invitations.ts';
import { type MemberRecord, membersPage } from '../../shared/wire/members.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';

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
  const enterprise = line.program.command('enterprise').description('the enterprises that you have a user in');
  const list = enterprise
    .command('list')
    .alias('ls')
    .description('list your enterprises; * is the one of this sign-in');
  handle(line, list, listEnterprises);
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
