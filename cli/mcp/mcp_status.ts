import { findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { isContainerCommand } from '../../shared/mcp/server_isolation.ts';
import { logsReply } from '../../shared/wire/mcp/mcp_gateway.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { type MachineServer, machineServer, serversOfMachine } from './mcp_machine.ts';
import { imageNews } from './mcp_image.ts';
import { failedReleaseText } from './mcp_package.ts';
import { reachText } from './mcp_isolation.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column } from '../terminal/output.ts';

/** `svc mcp status [SERVER]`. */
export async function showStatus(call: Call): Promise<undefined> {
  const { servers: all, problems } = await serversOfMachine(call);
  const [wanted] = call.args;
  const servers = wanted === undefined ? all : [machineServer(all, wanted)];
  for (const problem of problems)
    call.print.warn(`left out, because this version of svc cannot use it: ${toPrintable(problem)}`);
  const items = servers.map(({ server, consent, missing, health, allowed_hosts, refused_hosts, image }) => {
    const { id, name, owner, mode, isolation } = server;
    const reach = { isolation, allowed_hosts, refused_hosts, image };
    return { id, name, owner, mode, consent, missing, health, unchecked: findUncheckedCode(server), ...reach };
  });
  call.print.rows({ items }, servers, COLUMNS, 'No MCP servers: svc mcp add NAME -- COMMAND');
  for (const { name, unchecked } of items) {
    for (const reason of unchecked) call.print.warn(toPrintable(`${name} ${reason}`));
  }
  for (const { server } of servers) {
    const failed = failedReleaseText(call, server);
    if (failed !== null) call.print.warn(toPrintable(failed));
  }
  for (const text of await imageNews(call, servers)) call.print.warn(toPrintable(text));
  if (!call.print.person) return;
  if (wanted !== undefined) for (const known of servers) call.print.note(toPrintable(isolationText(known)));
  for (const { server, refused_hosts: refused } of servers) {
    for (const host of refused) call.print.note(`refused: ${host}; to allow it: svc mcp allow ${server.name} ${host}`);
  }
}

function isolationText({ server, allowed_hosts: hosts }: MachineServer): string {
  const { name, mode, command } = server;
  if (mode === 'remote') return `${name} runs nothing on this machine`;
  if (hosts !== null)
    return `${name} runs in a container, or in a sandbox where there is no engine; ${reachText(name, hosts)}`;
  const isBoxed = server.isolation === 'container' || isContainerCommand(command);
  return isBoxed ? `${name} runs in a container with an open network` : `${name} runs code as you, in no container`;
}

const COLUMNS: readonly Column<MachineServer>[] = [
  { title: 'NAME', cell: ({ server }) => server.name },
  { title: 'MODE', cell: ({ server }) => server.mode },
  {
    title: 'STATE',
    cell: ({ health, server }) =>
      server.ruleProblem === undefined ? health.state.replaceAll('_', ' ') : 'stopped by a rule',
    style: ({ health, server }) =>
      health.state === 'running'
        ? 'green'
        : isTrouble(health.state) || server.ruleProblem !== undefined
          ? 'yellow'
          : null,
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
