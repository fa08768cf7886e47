import type { Egress } from '../../shared/model/egress.ts';
import type { Call } from '../command_line.ts';

/** The gateway runs MCP servers on the machine, not in the closed network of a container or a sandbox. */
export function warnOfServersOutside(
  call: Call,
  { egress, mcpServers }: { readonly egress: Egress; readonly mcpServers: readonly string[] | null },
  boundary: 'container' | 'sandbox',
): void {
  if (egress === 'open' || mcpServers?.length === 0) return;
  const run = mcpServers?.length === 1 ? 'runs' : 'run';
  const which = mcpServers === null ? 'your MCP servers' : `--mcp: ${mcpServers.join(', ')}`;
  call.print.warn(`${which} ${run} outside the sealed ${boundary}; svc mcp status NAME shows what a server can reach`);
}
