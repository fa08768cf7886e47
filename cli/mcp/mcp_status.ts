import { findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { logsReply } from '../../shared/wire/mcp/mcp_gateway.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { type MachineServer, machineServer, serversOfMachine } from './mcp_machine.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column } from '../terminal/output.ts';

/** `svc mcp status`. */
export async function showStatus(call: Call): Promise<undefined> {
  const { servers, problems } = await serversOfMachine(call);
  for (const problem of problems)
    call.print.warn(`left out, because this version of svc cannot use it: ${toPrintable(problem)}`);
  const items = servers.map(({ server, consent, missing, health }) => {
    const { id, name, owner, mode } = server;
    return { id, name, owner, mode, consent, missing, health, unchecked: findUncheckedCode(server) };
  });
  call.print.rows({ items }, servers, COLUMNS, 'No MCP servers: svc mcp add NAME -- COMMAND');
  for (const { name, unchecked } of items) {
    for (const reason of unchecked) call.print.warn(toPrintable(`${name} ${reason}`));
  }
}

const COLUMNS: readonly Column<MachineServer>[] = [
  { title: 'NAME', cell: ({ server }) => server.name },
  { title: 'MODE', cell: ({ server }) => server.mode },
  {
    title: 'STATE',
    cell: ({ health }) => health.state.replaceAll('_', ' '),
    style: ({ health }) => (health.state === 'running' ? 'green' : isTrouble(health.state) ? 'yellow' : null),
  },
  { title: 'GATEWAYS', cell: ({ health }) => String(health.gateways) },
  { title: 'RESTARTS', cell: ({ health }) => String(health.restarts ?? '-') },
  { title: 'TOOLS', cell: ({ health }) => String(health.tools ?? '-') },
  { title: 'WHAT TO DO', cell: ({ health }) => health.last_error ?? '' },
];

function isTrouble(state: string): boolean {
  return state === 'failed' || state.startsWith('needs_');
}

/** `svc mcp logs SERVER`. */
export async function showLogs(call: Call): Promise<undefined> {
  const { servers } = await serversOfMachine(call);
  const { server } = machineServer(servers, call.args[0] ?? '');
  const reply = await sidecarClient(call.context, call.options).call('GET', `/v1/mcp/logs/${server.id}`, logsReply);
  call.print.data(reply, () => reply.items.map((one) => logText(one, reply.items.length > 1)).join(''));
  if (reply.items.length === 0 && call.print.person) call.print.note(`${server.name} has written nothing.`);
}

type GatewayLog = (typeof logsReply._output.items)[number];

function logText({ gateway, lines }: GatewayLog, isTitled: boolean): string {
  const title = `== ${gateway.kind === 'stdio' ? 'a client’s gateway' : 'the sidecar’s gateway'}, process ${gateway.pid}`;
  return [...(isTitled ? [title] : []), ...lines].map((line) => `${toPrintable(line)}\n`).join('');
}
