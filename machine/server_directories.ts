import { join } from 'node:path';

/** The directories of one server, below `$SVC_HOME/mcp/servers/<id>`. */
export interface ServerDirectories {
  readonly home: string;
  readonly temporary: string;
}

/** The parent of all servers' directories. */
export function serversDirectory(mcpHome: string): string {
  return join(mcpHome, 'servers');
}

export function serverDirectories(mcpHome: string, serverId: string): ServerDirectories {
  const own = join(serversDirectory(mcpHome), serverId);
  return { home: join(own, 'home'), temporary: join(own, 'tmp') };
}
