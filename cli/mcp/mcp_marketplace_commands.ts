import { Option, type Command } from 'commander';
import { MCP_ISOLATIONS } from '../../shared/model/mcp_server.ts';
import { MARKETPLACE_TRANSPORTS } from '../../shared/wire/marketplace.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import { ownerOption } from '../command_options.ts';
import { MCP_SERVER_ARGUMENT } from './mcp_commands.ts';
import type { McpInstallOptions } from './mcp_install.ts';
import type { McpSearchOptions, McpViewOptions } from './mcp_search.ts';
import type { McpUpgradeOptions } from './mcp_upgrade.ts';

const ENTRY_ARGUMENT = ['<entry>', 'its name in the registry, such as io.github.acme/weather'] as const;
const INPUT_OPTION = [
  '--input <name=value>',
  'a value that the server needs; secrets are prompted for or stored later (repeatable)',
] as const;

/** `svc mcp search|view|install|upgrade`: the MCP registry. */
export function addMcpMarketplaceCommands(line: CommandLine, mcp: Command): void {
  addSearch(line, mcp);
  addInstall(line, mcp);
  const upgrade = mcp
    .command('upgrade')
    .description('show what changes, then upgrade an installed server to the newest version in the registry')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--release <version>', 'the version (default: the newest)')
    .option(...INPUT_OPTION, collectValue)
    .option('--check', 'only show what would change')
    .option('--yes', 'do not ask')
    .addOption(ownerOption());
  handle<McpUpgradeOptions>(line, upgrade, async (call) => (await import('./mcp_upgrade.ts')).upgradeMcpServer(call));
}

function addSearch(line: CommandLine, mcp: Command): void {
  const search = mcp
    .command('search')
    .description('search or browse the MCP registry')
    .argument('[text...]', 'text in the name or the description')
    .addOption(new Option('--transport <transport>', 'only these').choices(MARKETPLACE_TRANSPORTS))
    .option('--registry-type <type>', 'only packages of this type: npm, pypi, oci, ...')
    .addOption(
      new Option('--needs-secret <answer>', 'only servers that need a secret, or need none').choices(['yes', 'no']),
    )
    .option('--publisher <namespace>', 'only of this publisher, such as com.stripe or io.github.acme')
    .option('--limit <count>', 'how many', '20');
  handle<McpSearchOptions>(line, search, async (call) => (await import('./mcp_search.ts')).searchRegistry(call));
  const view = mcp
    .command('view')
    .description('show a registry entry: its versions, and what an install would start and ask for')
    .argument(...ENTRY_ARGUMENT)
    .option('--release <version>', 'the version (default: the newest)')
    .option('--readme', 'show the README of its package or its repository instead');
  handle<McpViewOptions>(line, view, async (call) => (await import('./mcp_search.ts')).viewEntry(call));
}

function addInstall(line: CommandLine, mcp: Command): void {
  const install = mcp
    .command('install')
    .description('show exactly what a server from the registry will start, then install it')
    .argument(...ENTRY_ARGUMENT)
    .option('--release <version>', 'the version (default: the newest)')
    .option('--package <number>', 'the package with this number in `svc mcp view`')
    .option('--remote <number>', 'the remote server with this number')
    .option('--name <name>', 'local name of the server, and prefix of its tools')
    .addOption(ownerOption('owner of the server').default('personal'))
    .option(...INPUT_OPTION, collectValue)
    .option('--credential <name>', 'with --stdin or --file: store this credential too')
    .option('--stdin', 'read the credential from stdin')
    .option('--file <file>', 'read the credential from a file')
    .option('--keep-newline', 'keep a trailing line break (by default, one is dropped)')
    .option('--dry-run', 'check everything but install nothing')
    .addOption(
      new Option(
        '--isolation <isolation>',
        'container or process (default: a container, where this machine can)',
      ).choices(MCP_ISOLATIONS),
    )
    .option('--allow <host>', 'a host that its container may reach (repeatable)', collectValue)
    .option('--yes', 'do not ask');
  handle<McpInstallOptions>(line, install, async (call) => (await import('./mcp_install.ts')).installMcpServer(call));
}
