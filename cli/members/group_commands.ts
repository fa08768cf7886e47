import { membersPage } from '../../shared/wire/members.ts';
import {
  groupMembersPage,
  type GroupMember,
  groupRecord,
  type GroupRecord,
  groupsPage,
} from '../../shared/wire/sharing/groups.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop, isYes } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { Column } from '../terminal/output.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { counted } from '../../shared/model/sentence.ts';

interface DeleteOptions {
  readonly yes?: boolean;
}

/** `svc group ...`. */
export function addGroupCommands(line: CommandLine): void {
  const group = line.program.command('group').description('groups of people of your enterprise, to share things with');
  handle(line, group.command('list').alias('ls').description('list the groups of your enterprise'), listGroups);
  const create = group.command('create').description('create a group (admins)').argument('<name>', 'its name');
  handle(line, create, createGroup);
  const named = (name: string, text: string) =>
    group.command(name).description(text).argument('<group>', 'its id (grp_...) or its name');
  handle(line, named('rename', 'rename a group (admins)').argument('<name>', 'its new name'), renameGroup);
  const remove = named('delete', 'delete a group (admins); what is shared with it is no longer shared');
  handle<DeleteOptions>(line, remove.alias('rm').option('--yes', 'do not ask'), deleteGroup);
  handle(line, named('members', 'list the people in a group'), listPeople);
  const person = (name: string, text: string) =>
    named(name, text).argument('<person>', 'id (usr_...) or email address of a member of your enterprise');
  handle(line, person('add', 'put a member of your enterprise into a group (admins)'), addPerson);
  handle(line, person('remove', 'take somebody out of a group (admins)'), removePerson);
}

async function listGroups(call: Call): Promise<undefined> {
  const groups = await fetchAllPages(controlClient(call.context, call.options), '/v1/groups', groupsPage, {});
  const columns: readonly Column<GroupRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'PEOPLE', cell: ({ members }) => String(members) },
    { title: 'MANAGED BY', cell: ({ managed_by: by }) => by ?? 'admins' },
  ];
  call.print.rows(groups, groups, columns, 'no groups: an admin creates one with "svc group create NAME"');
}

async function createGroup({ context, options, print, args }: Call): Promise<undefined> {
  const body = { name: args[0] ?? '' };
  const created = await controlClient(context, options).call('POST', '/v1/groups', groupRecord, { body });
  print.line(created, created.id);
}

async function renameGroup({ context, options, print, args }: Call): Promise<undefined> {
  const client = controlClient(context, options);
  const { id, revision: ifMatch } = await findGroup(client, args[0] ?? '');
  const body = { name: args[1] ?? '' };
  const renamed = await client.call('PUT', `/v1/groups/${id}`, groupRecord, { body, ifMatch });
  print.line(renamed, `${renamed.id} is now ${renamed.name}`);
}

async function deleteGroup({ context, options, print, args }: Call<DeleteOptions>): Promise<undefined> {
  const client = controlClient(context, options);
  const { id, name, members } = await findGroup(client, args[0] ?? '');
  if (options.yes !== true) {
    print.note(
      `${name} has ${counted(members, 'person', 'people')}, who ${members === 1 ? 'loses' : 'lose'} what is shared with it.`,
    );
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    if (!isYes(await askOrStop(context, `Delete the group ${name}? [y/N] `))) {
      throw new CliError(EXIT.failed, 'nothing was changed');
    }
  }
  await client.callEmpty('DELETE', `/v1/groups/${id}`);
  print.line({ deleted: id }, `deleted ${id}`);
}

async function listPeople({ context, options, print, args }: Call): Promise<undefined> {
  const client = controlClient(context, options);
  const { id } = await findGroup(client, args[0] ?? '');
  const people = await fetchAllPages(client, `/v1/groups/${id}/members`, groupMembersPage, {});
  const columns: readonly Column<GroupMember>[] = [
    { title: 'ID', cell: ({ id: user }) => user },
    { title: 'NAME', cell: ({ display_name: name }) => name },
  ];
  print.rows(people, people, columns, 'nobody is in this group');
}

async function addPerson(call: Call): Promise<undefined> {
  const { id, user } = await findMembership(call);
  await controlClient(call.context, call.options).callEmpty('PUT', `/v1/groups/${id}/members/${user}`);
  call.print.line({ group: id, added: user }, `${user} is in ${id}`);
}

async function removePerson(call: Call): Promise<undefined> {
  const { id, user } = await findMembership(call);
  await controlClient(call.context, call.options).callEmpty('DELETE', `/v1/groups/${id}/members/${user}`);
  call.print.line({ group: id, removed: user }, `${user} is no longer in ${id}`);
}

async function findMembership({ context, options, args }: Call): Promise<{ id: string; user: string }> {
  const client = controlClient(context, options);
  const { id } = await findGroup(client, args[0] ?? '');
  return { id, user: await findUser(client, args[1] ?? '') };
}

/** The group with this id or name. */
export async function findGroup(client: HttpClient, idOrName: string): Promise<GroupRecord> {
  const all = await fetchAllPages(client, '/v1/groups', groupsPage, {});
  const wanted = idOrName.toLowerCase();
  const found = all.filter(({ id, name }) => id === idOrName || name.toLowerCase() === wanted);
  return pickNamed(idOrName, all, found, {
    nameOf: ({ name }) => name,
    line: ({ id, name }) => `${id}  ${name}`,
    none: `there is no group ${JSON.stringify(idOrName)}`,
    hint: '`svc group list` shows them.',
    plural: 'groups',
  });
}

/** The id of a member, which is given as such or by its address. */
async function findUser(client: HttpClient, idOrEmail: string): Promise<string> {
  if (!idOrEmail.includes('@')) return encodeURIComponent(idOrEmail);
  const all = await fetchAllPages(client, '/v1/members', membersPage, {});
  const found = all.filter(({ email }) => email?.toLowerCase() === idOrEmail.toLowerCase());
  const member = pickNamed(idOrEmail, all, found, {
    nameOf: ({ email }) => email ?? '',
    line: ({ id, display_name: name }) => `${id}  ${name}`,
    none: `there is no member with the address ${JSON.stringify(idOrEmail)}`,
    hint: '`svc members list` shows them.',
    plural: 'members',
  });
  return member.id;
}
