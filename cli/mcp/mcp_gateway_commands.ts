import type { Command } from 'commander';
import { handle, type CommandLine } from '../command_line.ts';
import type { ConsentOptions } from './mcp_consent.ts';
import type { GatewayOptions } from './mcp_gateway.ts';

// What the commands do is loaded when they are used: every other command starts faster.

/** `svc mcp gateway|consent|status|logs`: what runs on this machine. */
export function addMcpGatewayCommands(line: CommandLine, mcp: Command): void {
  const gateway = mcp
    .command('gateway')
    .description('serve all servers to one MCP client over stdin and stdout; clients are configured to start this')
    .option('--http', 'print the URL where the sidecar serves them over HTTP, and end');
  handle<GatewayOptions>(line, gateway, async (call) => (await import('./mcp_gateway.ts')).serveGateway(call));
  const consent = mcp
    .command('consent')
    .description('consent to local servers on this machine; asks for each one that is new or changed')
    .argument('[server]', 'its name or id (default: every one that waits for consent)')
    .option('--yes', 'consent without being asked')
    .option('--unchecked', 'with --yes: also to code that nobody checked')
    .option('--withdraw', 'take the consent back: the server is stopped');
  handle<ConsentOptions>(line, consent, async (call) => (await import('./mcp_consent.ts')).consentToServers(call));
  const status = mcp.command('status').description('show the state of each server on this machine');
  handle(line, status, async (call) => (await import('./mcp_status.ts')).showStatus(call));
  const logs = mcp
    .command('logs')
    .description('show what a server wrote to stderr, with its credentials masked')
    .argument('<server>', 'its name or id');
  handle(line, logs, async (call) => (await import('./mcp_status.ts')).showLogs(call));
}
