import type { Command } from 'commander';
import {
  joinOffersReply,
  joinRequestRecord,
  type JoinOffer,
  type JoinRequestRecord,
  joinRequestsPage,
  ownJoinRequest,
} from '../../shared/wire/people/join_requests.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { mergeEnterprise, type MergeOptions } from './merge_command.ts';
import type { Column } from '../terminal/output.ts';

interface AcceptOptions {
  readonly role?: string;
}

/** The commands of admins, below `svc members`. */
export function addJoinDecisions(line: CommandLine, members: Command): void {
  handle(line, members.command('requests').description('list who asks to join your enterprise (admins)'), listRequests);
  const accept = members
    .command('accept')
    .description('make somebody who asks a member (admins)')
    .argument('<id>', 'the id of the request (jrq_...)')
    .option('--role <role>', 'member, admin or owner (default: member)');
  handle<AcceptOptions>(line, accept, acceptRequest);
  const decline = members
    .command('decline')
    .description('decline a request to join (admins)')
    .argument('<id>', 'the id of the request (jrq_...)');
  handle(line, decline, declineRequest);
}

/** The commands of whoever asks, and of whoever brings things along, below `svc enterprise`. */
export function addJoinCommands(line: CommandLine, enterprise: Command): void {
  const offers = enterprise.command('offers').description('list enterprises that you may ask to join by your address');
  handle(line, offers, listOffers);
  const ask = enterprise
    .command('ask')
    .description('ask to join an enterprise: one of its admins decides')
    .argument('<id>', 'its id (ent_...)');
  handle(line, ask, askToJoin);
  const withdraw = enterprise
    .command('withdraw')
    .description('take your request to join back')
    .argument('<id>', 'the id of the request (jrq_...)');
  handle(line, withdraw, withdrawRequest);
  const merge = enterprise
    .command('merge')
    .description('move everything here from an enterprise in which you are alone')
    .argument('<id>', 'the id of that enterprise (ent_...)')
    .option('--yes', 'do not ask');
  handle<MergeOptions>(line, merge, mergeEnterprise);
}

async function listRequests({ context, options, print }: Call): Promise<undefined> {
  const all = await fetchAllPages(controlClient(context, options), '/v1/join-requests', joinRequestsPage, {});
  const columns: readonly Column<JoinRequestRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'ADDRESS', cell: ({ email }) => email },
    { title: 'NAME', cell: ({ display_name: name }) => name },
    { title: 'STATE', cell: ({ state }) => state },
    { title: 'ENDS', cell: ({ expires_at: expires }) => expires.slice(0, 10) },
  ];
  print.rows(all, all, columns, 'nobody asks to join');
}

async function acceptRequest({ context, options, print, args }: Call<AcceptOptions>): Promise<undefined> {
  const path = `/v1/join-requests/${encodeURIComponent(args[0] ?? '')}/accept`;
  const body = options.role === undefined ? {} : { role: options.role };
  const accepted = await controlClient(context, options).call('POST', path, joinRequestRecord, { body });
  print.line(accepted, `${accepted.email} is a member`);
}

async function declineRequest({ context, options, print, args }: Call): Promise<undefined> {
  const path = `/v1/join-requests/${encodeURIComponent(args[0] ?? '')}/decline`;
  const declined = await controlClient(context, options).call('POST', path, joinRequestRecord);
  print.line(declined, `declined ${declined.email}`);
}

async function listOffers({ context, options, print }: Call): Promise<undefined> {
  const { items } = await controlClient(context, options).call('GET', '/v1/join-offers', joinOffersReply);
  const columns: readonly Column<JoinOffer>[] = [
    { title: 'ENTERPRISE', cell: ({ enterprise_id: id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'BY', cell: ({ email }) => email },
    { title: 'REQUEST', cell: ({ request }) => (request === null ? '-' : `${request.id} ${request.state}`) },
  ];
  print.rows(items, items, columns, 'no enterprise takes requests from your addresses');
}

async function askToJoin({ context, options, print, args }: Call): Promise<undefined> {
  const body = { enterprise_id: args[0] ?? '' };
  const asked = await controlClient(context, options).call('POST', '/v1/join-requests', ownJoinRequest, { body });
  const joined = `you are a member: svc enterprise use ${asked.enterprise_id} switches to it`;
  const text = `${asked.id}: an admin decides until ${asked.expires_at.slice(0, 10)}`;
  print.line(asked, asked.state === 'accepted' ? joined : text);
}

async function withdrawRequest({ context, options, print, args }: Call): Promise<undefined> {
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('DELETE', `/v1/join-requests/${encodeURIComponent(id)}`);
  print.line({ withdrawn: id }, `withdrew ${id}`);
}
