import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { didYouMean } from '../../shared/model/near_match.ts';

type Named = Pick<McpServer, 'id' | 'name' | 'owner'>;

/**
 * The ids of the servers that a launch names, by name or id. A personal server wins over the enterprise's of the same name.
 * The session keeps the id: a server that later takes the same name is another one. Refuses with a message.
 */
export function findNamedMcpServers(
  wanted: readonly string[],
  servers: readonly Named[],
): Result<readonly string[], string> {
  const ids = new Set<string>();
  for (const name of wanted) {
    const found = findNamed(name, servers);
    if (found === undefined) return err(describeUnknown(name, servers));
    ids.add(found.id);
  }
  return ok([...ids]);
}

function findNamed(wanted: string, servers: readonly Named[]): Named | undefined {
  const byId = servers.find(({ id }) => id === wanted);
  const byName = servers.filter(({ name }) => name === wanted);
  return byId ?? byName.find(({ owner }) => owner === 'personal') ?? byName[0];
}

function describeUnknown(wanted: string, servers: readonly Named[]): string {
  const names = servers.map(({ name }) => name);
  const shown = JSON.stringify(wanted.slice(0, 64));
  const near = didYouMean(wanted, names);
  if (names.length === 0) return `${shown} is no MCP server: none is configured. Add one with: svc mcp add`;
  return `${shown} is no MCP server${near === '' ? '. List them with: svc mcp list' : near}`;
}
