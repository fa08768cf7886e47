import type { McpServer } from '../model/mcp_server.ts';

/** True for a command that itself starts a container. */
export function isContainerCommand(command: readonly string[]): boolean {
  return /(^|\/)docker$/.test(command[0] ?? '');
}

/**
 * Whether `svc` itself makes the server's container, and so can close its network (decision 0080). A configuration's own
 * `docker run` brings a network of its own.
 */
export function isPlacedInContainer({
  mode,
  command,
  isolation,
}: Pick<McpServer, 'mode' | 'command' | 'isolation'>): boolean {
  return mode === 'local' && isolation === 'container' && !isContainerCommand(command);
}
