import { marketplaceDetail, type MarketplaceDetail } from '../../shared/wire/marketplace.ts';
import { mcpServersPage, type McpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { entryPath, formatPublished } from './mcp_entry_text.ts';
import { pickNamed } from '../terminal/pick_named.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/** Lists the caller's servers. */
export function listAllMcpServers(client: HttpClient, owner?: string): Promise<McpServerRecord[]> {
  return fetchAllPages(client, '/v1/mcp-servers', mcpServersPage, { owner });
}

/** Finds a server by id or name. `owner` chooses if both the enterprise and the caller have one with that name. */
export async function findMcpServer(client: HttpClient, wanted: string, owner?: string): Promise<McpServerRecord> {
  const all = await listAllMcpServers(client);
  const named = all.filter(({ id, name }) => id === wanted || name === wanted);
  const found = named.filter((server) => owner === undefined || server.owner === owner);
  return pickNamed(wanted, all, found, {
    nameOf: ({ name }) => name,
    line: ({ id, name, owner: whose }) => `${id}  ${name}  ${whose}`,
    none: `there is no MCP server ${JSON.stringify(wanted)}`,
    hint: wanted.includes('/')
      ? `\`svc mcp view ${formatPublished(wanted)}\` shows an entry of the registry.`
      : '`svc mcp list` shows them.',
    plural: 'servers',
    advice: 'give the id of one, or use --owner',
  });
}

/** A registry entry in its newest version, or in `release`. */
export async function registryEntry(
  client: HttpClient,
  name: string,
  release: string | undefined,
): Promise<MarketplaceDetail> {
  try {
    return await client.call('GET', entryPath(name), marketplaceDetail, { query: { version: release } });
  } catch (error) {
    if (!(error instanceof CliError) || error.apiCode !== 'not_found') throw error;
    const version = release === undefined ? '' : ` with the version ${release}`;
    const fix =
      release === undefined ? 'Search for it: `svc mcp search TEXT`.' : `\`svc mcp view ${name}\` lists its versions.`;
    throw new CliError(EXIT.failed, formatPublished(`the registry has no entry ${name}${version}`), [
      formatPublished(fix),
    ]);
  }
}
