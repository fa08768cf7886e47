import { type MemberRecord, memberRecord, membersPage } from '../../shared/wire/members.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';

interface SuspendOptions {
  readonly yes?: boolean;
}

/** `svc members suspend ID`. */
export async function suspendMember(call: Call<SuspendOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const client = controlClient(context, options);
  const member = await findMember(client, call.args[0] ?? '');
  if (options.yes !== true) {
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    print.note('Its sign-ins, sidecars, personal tokens and grants end for good. What is its own stays stored.');
    const typed = await askOrStop(context, `Type ${member.id} to suspend the member: `);
    if (typed.trim() !== member.id) throw new CliError(EXIT.failed, `that is not ${member.id}: nothing was changed`);
  }
  // The role is as it is after the question, which may have waited long.
  const now = await findMember(client, member.id);
  const changed = await putMember(client, now, { suspended: true });
  print.line(changed, `${changed.display_name} is suspended`);
}

/** `svc members resume ID`. */
export async function resumeMember({ context, options, print, args }: Call): Promise<undefined> {
  const client = controlClient(context, options);
  const member = await findMember(client, args[0] ?? '');
  const changed = await putMember(client, member, { suspended: false });
  print.line(changed, `${changed.display_name} can sign in again, enrol sidecars and create tokens`);
}

/** The member with an id. */
export async function findMember(client: HttpClient, id: string): Promise<MemberRecord> {
  const members = await fetchAllPages(client, '/v1/members', membersPage, {});
  const member = members.find((each) => each.id === id);
  if (member !== undefined) return member;
  throw new CliError(EXIT.failed, `there is no member ${JSON.stringify(id)}`, ['`svc members list` shows them.']);
}

/** Sets the role of a member or whether it is suspended, if nobody has changed it since it was read. */
export function putMember(
  client: HttpClient,
  { id, role, suspended_at: suspendedAt, revision: ifMatch }: MemberRecord,
  change: { readonly role?: string; readonly suspended?: boolean },
): Promise<MemberRecord> {
  const body = { role, suspended: suspendedAt !== null, ...change };
  return client.call('PUT', `/v1/members/${encodeURIComponent(id)}`, memberRecord, { body, ifMatch });
}
