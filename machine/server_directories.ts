import { join } from 'node:path';

/** The directories of one server, below `$SVC_HOME/mcp/servers/<id>`. */
export interface ServerDirectories {
  readonly home: string;
  readonly temporary: string;
}

/** Where every server has a directory of its own. */
export function serversDirectory(mcpHome: string): string {
  return join(mcpHome, 'servers');
}

export function serverDirectories(mcpHome: string, serverId: string): ServerDirectories {
  const own = join(serversDirectory(mcpHome), serverId);
  return { home: join(own, 'home'), temporary: join(own, 'tmp') };
}
