import { allowedHosts, allowsHost, parseAllowedHost } from '../../shared/resolve/admitted_host.ts';
import { isPlacedInContainer } from '../../shared/mcp/server_isolation.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { valueOrUsageError } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';
import { type MachineServer, machineServer, serversOfMachine } from './mcp_machine.ts';

export interface McpAllowOptions {
  readonly remove?: boolean;
}

/** `svc mcp allow SERVER [HOST...]`: the hosts that the server's container reaches on this machine. */
export async function allowMcpHosts(call: Call<McpAllowOptions>): Promise<undefined> {
  const { args, options, print, context } = call;
  const [wanted = '', ...typed] = args;
  const hosts = typed.map((text) => valueOrUsageError('the host', parseAllowedHost(text)));
  const remove = options.remove === true;
  if (remove && hosts.length === 0) throw new CliError(EXIT.usage, '--remove needs a host');
  if (hosts.length > 0) requireOutside(call, homeOf(context, options), 'which may not change what a server reaches');
  const { servers } = await serversOfMachine(call);
  const known = machineServer(servers, wanted);
  const before = listOf(known);
  if (hosts.length === 0) {
    tell(call, known, before);
    return undefined;
  }
  const absent = hosts.find((host) => remove && !before.includes(host));
  if (absent !== undefined) throw new CliError(EXIT.failed, `${absent} is not allowed for ${known.server.name}`);
  const after = remove
    ? before.filter((host) => !hosts.includes(host))
    : [...new Set([...before, ...hosts])].toSorted();
  const path = `/v1/mcp/servers/${known.server.id}/hosts`;
  await sidecarClient(context, options).callEmpty('POST', path, { body: { allowed_hosts: after } });
  tell(call, known, after);
  if (print.person) print.note(`Gateways start ${known.server.name} again with this list.`);
  if (print.person && !remove) print.note('Its requests get the credentials that you have there.');
  return undefined;
}

/** The list of a server with a closed network. */
function listOf({ server, allowed_hosts: hosts, consent }: MachineServer): readonly string[] {
  if (hosts !== null) return hosts;
  const { name } = server;
  if (!isPlacedInContainer(server)) {
    const fix = `svc mcp update ${name} --isolation container`;
    throw new CliError(EXIT.failed, `${name} does not run in a container of svc, so no list limits it`, [fix]);
  }
  if (consent === 'needed') {
    throw new CliError(EXIT.failed, `${name} has no consent on this machine yet`, [`svc mcp consent ${name}`]);
  }
  throw new CliError(EXIT.failed, `the container of ${name} has an open network, so no list limits it`, [
    `To close it: svc mcp consent ${name} --withdraw, then svc mcp consent ${name}`,
  ]);
}

function tell({ print }: Call, { server, refused_hosts: refused }: MachineServer, hosts: readonly string[]): void {
  const allowed = allowedHosts(hosts, []);
  const left = refused.filter((host) => !allowsHost(allowed, host));
  const rows = [
    ...hosts.map((host) => ({ host, state: 'allowed' })),
    ...left.map((host) => ({ host, state: 'refused' })),
  ];
  print.rows(
    { server: server.name, allowed_hosts: hosts, refused_hosts: left },
    rows,
    [
      { title: 'HOST', cell: (row) => row.host },
      { title: 'STATE', cell: (row) => row.state },
    ],
    `${server.name} reaches no host: svc mcp allow ${server.name} HOST`,
  );
}
