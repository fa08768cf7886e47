import type { Command } from 'commander';
import { collectValue, handle, type CommandLine } from '../command_line.ts';
import type { ConsentOptions } from './mcp_consent.ts';
import type { McpAllowOptions } from './mcp_allow.ts';
import type { GatewayOptions } from './mcp_gateway.ts';

// The actions are loaded on use, so that other commands start faster.

/** `svc mcp gateway|consent|status|logs`: what runs on this machine. */
export function addMcpGatewayCommands(line: CommandLine, mcp: Command): void {
  const gateway = mcp
    .command('gateway')
    .description('serve all servers to one MCP client over stdin and stdout; MCP clients start this command')
    .option('--server <name>', 'serve only this server, with its own names of tools and prompts')
    .option('--http', 'print the URL where the sidecar serves them over HTTP, and exit');
  handle<GatewayOptions>(line, gateway, async (call) => (await import('./mcp_gateway.ts')).serveGateway(call));
  const consent = mcp
    .command('consent')
    .description('give consent to run local servers on this machine; asks for each new or changed one')
    .argument('[server]', 'name or id (default: every server that needs consent)')
    .option('--yes', 'give consent without a prompt')
    .option('--unchecked', 'with --yes: also for unchecked code')
    .option(
      '--scripts <package>',
      'run the install scripts of this npm package of the server, as you (repeatable; default: none run)',
      collectValue,
    )
    .option('--withdraw', 'withdraw the consent and stop the server');
  handle<ConsentOptions>(line, consent, async (call) => (await import('./mcp_consent.ts')).consentToServers(call));
  const allow = mcp
    .command('allow')
    .description("list or allow the hosts that a server's container reaches on this machine")
    .usage('SERVER [HOST...]')
    .argument('<server>', 'name or id')
    .argument('[host...]', 'a host, or a pattern such as *.example.com; without one, the list is shown')
    .option('--remove', 'remove the hosts from the list');
  handle<McpAllowOptions>(line, allow, async (call) => (await import('./mcp_allow.ts')).allowMcpHosts(call));
  const status = mcp
    .command('status')
    .description('show the state of each server on this machine, and the hosts that its container was refused')
    .argument('[server]', 'name or id (default: all)');
  handle(line, status, async (call) => (await import('./mcp_status.ts')).showStatus(call));
  const logs = mcp
    .command('logs')
    .description('show what a server wrote to stderr, with its credentials masked')
    .argument('<server>', 'name or id');
  handle(line, logs, async (call) => (await import('./mcp_status.ts')).showLogs(call));
}
