import { mcpServersPage, type McpServerRecord } from '../../shared/wire/mcp_servers.ts';
import { didYouMean } from '../../shared/wire/near_match.ts';
import { CliError, EXIT } from './exit_codes.ts';
import type { HttpClient } from './http_client.ts';
import { allPages } from './paging.ts';

export interface OwnerOption {
  readonly owner?: string;
}

/** Every server of the caller. */
export function allMcpServers(client: HttpClient, owner?: string): Promise<McpServerRecord[]> {
  return allPages(client, '/v1/mcp-servers', mcpServersPage, { owner });
}

/** The server of an id or a name. Where the enterprise and the caller both have one of that name, `owner` says which. */
export async function findMcpServer(client: HttpClient, wanted: string, owner?: string): Promise<McpServerRecord> {
  const all = await allMcpServers(client);
  const named = all.filter(({ id, name }) => id === wanted || name === wanted);
  const found = named.filter((server) => owner === undefined || server.owner === owner);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (only === undefined) {
    const near = didYouMean(
      wanted,
      all.map(({ name }) => name),
    );
    throw new CliError(EXIT.failed, `there is no MCP server ${JSON.stringify(wanted)}${near}`, [
      '`svc mcp list` shows them.',
    ]);
  }
  const lines = found.map(({ id, name, owner: whose }) => `${id}  ${name}  ${whose}`);
  throw new CliError(
    EXIT.failed,
    `${found.length} servers are named ${wanted}: name one by its id, or with --owner`,
    lines,
  );
}
