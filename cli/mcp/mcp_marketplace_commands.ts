import { Option, type Command } from 'commander';
import { OWNERS } from '../../shared/model/host_binding.ts';
import { MARKETPLACE_TRANSPORTS } from '../../shared/wire/marketplace.ts';
import { handle, several, type CommandLine } from '../command_line.ts';
import { MCP_SERVER_ARGUMENT, mcpOwnerOption } from './mcp_commands.ts';
import type { McpInstallOptions } from './mcp_install.ts';
import type { McpSearchOptions, McpViewOptions } from './mcp_search.ts';
import type { McpUpgradeOptions } from './mcp_upgrade.ts';

const ENTRY_ARGUMENT = ['<entry>', 'its name in the registry, such as io.github.acme/weather'] as const;
const INPUT_OPTION = [
  '--input <name=value>',
  'a value that the server asks for; a secret is asked for, or stored later (repeatable)',
] as const;

/** `svc mcp search|view|install|upgrade`: the MCP registry. */
export function addMcpMarketplaceCommands(line: CommandLine, mcp: Command): void {
  addSearch(line, mcp);
  addInstall(line, mcp);
  const upgrade = mcp
    .command('upgrade')
    .description('upgrade an installed server to the newest version in the registry, after showing what changes')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--release <version>', 'this version')
    .option(...INPUT_OPTION, several)
    .option('--check', 'only show what would change')
    .option('--yes', 'do not ask')
    .addOption(mcpOwnerOption());
  handle<McpUpgradeOptions>(line, upgrade, async (call) => (await import('./mcp_upgrade.ts')).upgradeMcpServer(call));
}

function addSearch(line: CommandLine, mcp: Command): void {
  const search = mcp
    .command('search')
    .description('search the MCP registry, or browse it')
    .argument('[text...]', 'text in the name or the description')
    .addOption(new Option('--transport <transport>', 'only these').choices(MARKETPLACE_TRANSPORTS))
    .option('--registry-type <type>', 'only packages of npm, pypi, oci and so on')
    .option('--limit <count>', 'how many', '20');
  handle<McpSearchOptions>(line, search, async (call) => (await import('./mcp_search.ts')).searchRegistry(call));
  const view = mcp
    .command('view')
    .description('show a registry entry: versions, and what an install would start and ask for')
    .argument(...ENTRY_ARGUMENT)
    .option('--release <version>', 'this version');
  handle<McpViewOptions>(line, view, async (call) => (await import('./mcp_search.ts')).viewEntry(call));
}

function addInstall(line: CommandLine, mcp: Command): void {
  const install = mcp
    .command('install')
    .description('install a server from the registry, after showing exactly what it will start')
    .argument(...ENTRY_ARGUMENT)
    .option('--release <version>', 'this version')
    .option('--package <number>', 'this package, as `svc mcp view` counts them')
    .option('--remote <number>', 'this remote server')
    .option('--name <name>', 'the name of the server here, and the prefix of its tools')
    .addOption(new Option('--owner <owner>', 'whose namespace').choices(OWNERS).default('personal'))
    .option(...INPUT_OPTION, several)
    .option('--credential <name>', 'with --stdin or --file: store this credential too')
    .option('--stdin', 'read the credential from stdin')
    .option('--file <file>', 'read the credential from a file')
    .option('--keep-newline', 'keep a line break at the end (else one is dropped)')
    .option('--dry-run', 'check everything, and install nothing')
    .option('--yes', 'do not ask');
  handle<McpInstallOptions>(line, install, async (call) => (await import('./mcp_install.ts')).installMcpServer(call));
}
