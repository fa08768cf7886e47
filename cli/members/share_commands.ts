import {
  type SHARE_LISTS,
  sharedThing,
  shareRecord,
  type ShareRecord,
  sharesPage,
} from '../../shared/wire/sharing/shares.ts';
import { findBinding } from '../bindings/find_binding.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { findConnector } from '../connectors/connector_lookup.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { findMcpServer } from '../mcp/mcp_lookup.ts';
import { askOrStop, isYes } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import type { Column } from '../terminal/output.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { findGroup } from './group_commands.ts';

interface AddOptions {
  readonly connector?: boolean;
  readonly mcp?: boolean;
  readonly with?: string;
  readonly group?: string;
}
interface ListOptions {
  readonly received?: boolean;
  readonly all?: boolean;
}
interface AcceptOptions {
  readonly yes?: boolean;
}

/** `svc share ...`. */
export function addShareCommands(line: CommandLine): void {
  const share = line.program
    .command('share')
    .description('let colleagues use a binding, connector or MCP server of yours, with its credential');
  const add = share
    .command('add')
    .description('share a binding of yours, or with --connector or --mcp a connector or MCP server')
    .argument('<name>', 'its host, or the name of a connector or MCP server; or its id')
    .option('--connector', 'the name is that of a connector')
    .option('--mcp', 'the name is that of an MCP server')
    .option('--with <person>', 'id (usr_...) or email address of a colleague')
    .option('--group <group>', 'id (grp_...) or name of a group');
  handle<AddOptions>(line, add, addShare);
  const list = share
    .command('list')
    .alias('ls')
    .description('list what you share')
    .option('--received', 'what others share with you')
    .option('--all', 'what anybody in your enterprise shares (admins)');
  handle<ListOptions>(line, list, listShares);
  const byId = (name: string, text: string) =>
    share.command(name).description(text).argument('<id>', 'its id (shr_...)');
  const accept = byId('accept', 'use what a colleague shares with you').option('--yes', 'do not ask');
  handle<AcceptOptions>(line, accept, acceptShare);
  handle(line, byId('decline', 'no longer use what a colleague shares with you'), declineShare);
  handle(line, byId('end', 'end a share that you gave (admins: any)'), endShare);
}

async function addShare({ context, options, print, args }: Call<AddOptions>): Promise<undefined> {
  const { with: person, group } = options;
  if ((person === undefined) === (group === undefined)) {
    throw new CliError(EXIT.usage, 'name whom to share with: --with PERSON or --group GROUP');
  }
  if (options.connector === true && options.mcp === true) {
    throw new CliError(EXIT.usage, '--connector and --mcp cannot be combined: choose one');
  }
  const client = controlClient(context, options);
  const receiver =
    person === undefined
      ? { group_id: (await findGroup(client, group ?? '')).id }
      : person.includes('@')
        ? { email: person }
        : { user_id: person };
  const body = { ...(await findThing(client, args[0] ?? '', options)), ...receiver };
  const created = await client.call('POST', '/v1/shares', shareRecord, { body });
  print.line(created, `${created.id}: ${created.shared_with.display_name} may use ${describeShared(created)}`);
}

async function findThing(client: HttpClient, name: string, { connector, mcp }: AddOptions) {
  if (connector === true) return { connector_id: (await findConnector(client, name, 'personal')).id };
  if (mcp === true) return { mcp_server_id: (await findMcpServer(client, name, 'personal')).id };
  return { binding_id: (await findBinding(client, name)).id };
}

async function listShares({ context, options, print }: Call<ListOptions>): Promise<undefined> {
  if (options.received === true && options.all === true) {
    throw new CliError(EXIT.usage, '--received and --all cannot be combined: choose one');
  }
  const list: (typeof SHARE_LISTS)[number] =
    options.received === true ? 'received' : options.all === true ? 'all' : 'given';
  const shares = await fetchAllPages(controlClient(context, options), '/v1/shares', sharesPage, { list });
  const columns: readonly Column<ShareRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: (share) => sharedThing(share).name },
    { title: 'USED', cell: (share) => sharedThing(share).how },
    { title: 'BY', cell: ({ shared_by: by }) => by.display_name },
    { title: 'WITH', cell: ({ shared_with: receiver }) => receiver.display_name },
    { title: 'STATE', cell: ({ state }) => state ?? '-' },
  ];
  print.rows(shares, shares, columns, NONE[list]);
}

const NONE: Readonly<Record<(typeof SHARE_LISTS)[number], string>> = {
  given: 'you share nothing: "svc share add HOST --with PERSON" does',
  received: 'nothing is shared with you',
  all: 'nothing is shared',
};

async function acceptShare({ context, options, print, args }: Call<AcceptOptions>): Promise<undefined> {
  const client = controlClient(context, options);
  const share = await findReceived(client, args[0] ?? '');
  print.note(
    `${share.shared_by.display_name} shares ${describeShared(share)}. ${SENT[share.kind](share.shared_by.display_name)}`,
  );
  if (options.yes !== true) {
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    if (!isYes(await askOrStop(context, 'Use it? [y/N] '))) throw new CliError(EXIT.failed, 'nothing was changed');
  }
  const body = { revision: sharedThing(share).revision };
  const accepted = await client.call('POST', `/v1/shares/${share.id}/accept`, shareRecord, { body });
  print.line(accepted, `${accepted.id}: ${accepted.state ?? ''}`);
}

/** What accepting means. */
const SENT: Readonly<Record<ShareRecord['kind'], (name: string) => string>> = {
  host_binding: (name) => `Your agents' requests there are sent under the account that ${name} chose.`,
  connector: (name) => `Your agents' requests for its operations are sent under the account that ${name} chose.`,
  mcp_server: (name) => `Your agents' calls of its tools are sent under the account that ${name} chose.`,
};

function describeShared(share: ShareRecord): string {
  const { name, how } = sharedThing(share);
  return `${name} (${how})`;
}

async function findReceived(client: HttpClient, id: string): Promise<ShareRecord> {
  const all = await fetchAllPages(client, '/v1/shares', sharesPage, { list: 'received' });
  return pickNamed(
    id,
    all,
    all.filter((each) => each.id === id),
    {
      nameOf: (each) => each.id,
      line: (each) => each.id,
      none: `nothing with the id ${JSON.stringify(id)} is shared with you`,
      hint: '`svc share list --received` shows what is.',
      plural: 'shares',
    },
  );
}

async function declineShare({ context, options, print, args }: Call): Promise<undefined> {
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('POST', `/v1/shares/${encodeURIComponent(id)}/decline`);
  print.line({ declined: id }, `${id} is no longer used`);
}

async function endShare({ context, options, print, args }: Call): Promise<undefined> {
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('DELETE', `/v1/shares/${encodeURIComponent(id)}`);
  print.line({ ended: id }, `ended ${id}`);
}
