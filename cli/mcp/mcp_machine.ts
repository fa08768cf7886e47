import type { McpServer } from '../../shared/model/mcp_server.ts';
import { readSnapshotMcpServers } from '../../shared/wire/mcp/mcp_servers.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { type ListedServer, serversReply } from '../../shared/wire/mcp/mcp_gateway.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { policyVersion } from '../launch/session_access.ts';

/** A server as this machine's sidecar has it. */
export interface MachineServer extends Omit<ListedServer, 'server'> {
  readonly server: McpServer;
}

interface MachineServers {
  readonly servers: readonly MachineServer[];
  /** Messages about servers that this version cannot use. */
  readonly problems: readonly string[];
}

/** Time limit for waiting for the newest policy. */
const TIMEOUT_MS = 40_000;

/** The servers of this machine, including every change stored so far. */
export async function serversOfMachine(call: Call): Promise<MachineServers> {
  const sidecar = sidecarClient(call.context, call.options);
  const newest = await policyVersion(call);
  const query = newest === null ? {} : { min_policy_version: newest };
  const reply = await sidecar.call('GET', '/v1/mcp/servers', serversReply, { query, timeoutMs: TIMEOUT_MS });
  const servers = reply.items.flatMap(({ server: record, ...rest }) =>
    readSnapshotMcpServers([record]).servers.map(({ server }) => ({ ...rest, server })),
  );
  return { servers, problems: reply.problems.map(({ id, message }) => `${id ?? 'a server'}: ${message}`) };
}

/**
 * The servers of this machine after it has received the last change, so that a gateway started next uses it. If it has not
 * received the change, this warns and returns null; the change itself is stored.
 */
export async function serversAfterChange(call: Call): Promise<readonly MachineServer[] | null> {
  try {
    return (await serversOfMachine(call)).servers;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    call.print.warn(`the change is stored, but gateways on this machine may not have it yet: ${error.message}`);
    return null;
  }
}

/** Finds a server by its id or by a unique name. */
export function machineServer(servers: readonly MachineServer[], wanted: string): MachineServer {
  const found = servers.filter(({ server: { id, name } }) => id === wanted || name === wanted);
  return pickNamed(wanted, servers, found, {
    nameOf: ({ server }) => server.name,
    line: ({ server: { id, owner } }) => `${id}  ${owner}`,
    none: `this machine has no MCP server ${JSON.stringify(wanted)}`,
    hint: '`svc mcp status` shows them.',
    plural: 'servers',
  });
}

/** After an authorisation was deleted. The control plane asks the provider after its reply, so the answer is only in the log. */
export function noteTokensLeft({ print }: Pick<Call, 'print'>): void {
  print.note('Whether its provider has revoked its tokens: svc audit list --type control.mcp_server.tokens_revoked');
  print.note('Without such an event they stay valid there: end its access in the settings of the account.');
}
