import { parseTunnelHost } from '../../../shared/net/tunnel_host.ts';
import { tunnelHostRecord, tunnelHostsPage, type TunnelHostRecord } from '../../../shared/wire/hosts/tunnel_hosts.ts';
import { controlClient } from '../../clients.ts';
import { handle, type Call, type CommandLine } from '../../command_line.ts';
import { type OwnerOption, ownerFilter, ownerOption, valueOrUsageError } from '../../command_options.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { fetchAllPages } from '../../terminal/fetch_all_pages.ts';
import { homeOf } from '../../up/home.ts';
import { requireOutside } from './allow_command.ts';

const MAY_NOT = 'which may not change what the proxy reads';

/** `svc tunnel ...`. */
export function addTunnelCommands(line: CommandLine): void {
  const tunnel = line.program
    .command('tunnel')
    .description('list the hosts whose connections are carried without being intercepted');
  const add = tunnel
    .command('add')
    .description('carry connections to a host unread: for clients that accept only its own certificate')
    .argument('<host>', 'exact host, or *.suffix for every host below it')
    .addOption(ownerOption('owner of the entry').default('personal'));
  handle<OwnerOption>(line, add, addTunnel);
  const list = tunnel.command('list').alias('ls').description('list these hosts').addOption(ownerFilter());
  handle<OwnerOption>(line, list, listTunnels);
  const remove = tunnel
    .command('rm')
    .description('intercept connections to a host again; open ones are closed')
    .argument('<host>')
    .addOption(ownerOption('owner of the entry').default('personal'));
  handle<OwnerOption>(line, remove, removeTunnel);
}

async function addTunnel(call: Call<OwnerOption>): Promise<undefined> {
  const { context, options, print } = call;
  const host = hostOf(call);
  requireOutside(call, homeOf(context, options), MAY_NOT);
  const body = { host, owner: options.owner };
  const record = await controlClient(context, options).call('POST', '/v1/tunnel-hosts', tunnelHostRecord, { body });
  print.data(record, () => (print.person ? `carried unread from now on: ${record.host}\n` : `${record.id}\n`));
  print.note(
    'Requests to it are not recorded, checked or given a credential. A sealed session must also allow the host.',
  );
}

async function listTunnels({ context, options, print }: Call<OwnerOption>): Promise<undefined> {
  const client = controlClient(context, options);
  const items = await fetchAllPages(client, '/v1/tunnel-hosts', tunnelHostsPage, { owner: options.owner });
  print.rows(
    { items },
    items,
    [
      { title: 'HOST', cell: (row: TunnelHostRecord) => row.host },
      { title: 'OWNER', cell: (row: TunnelHostRecord) => row.owner },
    ],
    'Connections to every host are intercepted: svc tunnel add HOST',
  );
}

async function removeTunnel(call: Call<OwnerOption>): Promise<undefined> {
  const { context, options, print } = call;
  const host = hostOf(call);
  requireOutside(call, homeOf(context, options), MAY_NOT);
  const client = controlClient(context, options);
  const items = await fetchAllPages(client, '/v1/tunnel-hosts', tunnelHostsPage, { owner: options.owner });
  const found = items.find((item) => item.host === host);
  if (found === undefined) {
    throw new CliError(EXIT.failed, `${host} is not on the ${options.owner ?? 'personal'} list`, [
      '`svc tunnel list` shows it.',
    ]);
  }
  await client.callEmpty('DELETE', `/v1/tunnel-hosts/${found.id}`);
  if (print.person || print.json) print.data({ deleted: found.id }, () => `intercepted again: ${host}\n`);
}

function hostOf({ args }: Call): string {
  return valueOrUsageError('the host', parseTunnelHost(args[0] ?? ''));
}
