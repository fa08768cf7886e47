import { mcpToolsReply, type McpToolRecord } from '../../shared/wire/mcp/mcp_tools.ts';
import type { McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { isInsideSession, requireOutside } from '../launch/hosts/allow_command.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';

/** An agent must not accept the change of a tool that a person has to look at, or allow itself one that asks. */
export function requireOutsideForTools(call: Call): void {
  requireOutside(call, homeOf(call.context, call.options), 'which may not decide about tools');
}

/**
 * As {@link requireOutsideForTools}, if the server has rules or tools that were looked at: its first list would be accepted again
 * if it were removed and added anew, and its rules would be gone.
 */
export async function requireOutsideIfDecided(call: Call, client: HttpClient, server: McpServerRecord): Promise<void> {
  if (!isInsideSession(call, homeOf(call.context, call.options))) return;
  const { allow, deny, approval } = server.tools;
  const hasRules = allow !== null || deny.length > 0 || approval.length > 0;
  if (hasRules || ((await fetchTools(client, server)) ?? []).length > 0) requireOutsideForTools(call);
}

/** The tools that gateways have seen; null from an earlier control plane, which keeps none. */
export async function fetchTools(
  client: HttpClient,
  { id }: McpServerRecord,
): Promise<readonly McpToolRecord[] | null> {
  try {
    return (await client.call('GET', `/v1/mcp-servers/${id}/tools`, mcpToolsReply)).items;
  } catch (error) {
    if (error instanceof CliError && error.apiCode === 'not_found') return null;
    throw error;
  }
}
