import { type RemovalOptions, withRemovalOptions } from '../bindings/confirm_removal.ts';
import { withSourceOptions } from '../bindings/source_options.ts';
import { Option, type Command } from 'commander';
import { MCP_ISOLATIONS, MCP_TRANSPORTS } from '../../shared/model/mcp_server.ts';
import { SOURCE_KINDS } from '../../shared/wire/sources/source_table.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import {
  type OwnerOption,
  ownerFilter,
  ownerOption,
  SECRET_AND_KEY_WAYS,
  withClientAuthentication,
  withSecretSource,
} from '../command_options.ts';
import type { McpAuthorizeOptions } from './mcp_authorize.ts';
import type { McpAddOptions, McpUpdateOptions } from './mcp_change.ts';
import type { McpCredentialOptions } from './mcp_credential.ts';
import type { McpMintOptions } from './mcp_mint.ts';
import type { PolicyApplyOptions } from './mcp_policy.ts';
import type { McpRollbackOptions } from './mcp_revisions.ts';
import type { McpRulesOptions } from './mcp_rules.ts';
import type { McpToolsOptions } from './mcp_tools.ts';

// The actions are loaded on use, so that other commands start faster.

/** `svc mcp ...`: commands for configurations. Returns the group, so that other files can add commands to it. */
export function addMcpCommands(line: CommandLine): Command {
  const mcp = line.program.command('mcp').description('configure and run MCP servers for agents');
  addList(line, mcp);
  addChanges(line, mcp);
  addCredential(line, mcp);
  addAuthorize(line, mcp);
  addTools(line, mcp);
  addRules(line, mcp);
  addPolicy(line, mcp);
  addRollback(line, mcp);
  addClients(line, mcp);
  return mcp;
}

/** The argument that names a server. */
export const MCP_SERVER_ARGUMENT = ['<server>', 'name or id, as `svc mcp list` shows it'] as const;

function addList(line: CommandLine, mcp: Command): void {
  const list = mcp
    .command('list')
    .alias('ls')
    .description('list servers and their state on your machines')
    .addOption(ownerFilter());
  handle<OwnerOption>(line, list, async (call) => (await import('./mcp_views.ts')).listMcpServers(call));
  const show = mcp
    .command('show')
    .description('show a server: its command, credentials and warnings')
    .argument(...MCP_SERVER_ARGUMENT)
    .addOption(ownerOption());
  handle<OwnerOption>(line, show, async (call) => (await import('./mcp_views.ts')).showMcpServer(call));
}

function addChanges(line: CommandLine, mcp: Command): void {
  const add = withConfiguration(
    mcp
      .command('add')
      .description('register a server: a program and its arguments after --, or --url')
      .argument('<name>', 'name and prefix of its tools: lower-case letters, digits and "-"')
      .argument('[command...]', 'after --: the program and its arguments; no shell interprets them'),
  )
    .addOption(ownerOption('owner of the server').default('personal'))
    .option('--allow <host>', 'a host that its container may reach, such as api.example.com (repeatable)', collectValue)
    .option('--disabled', 'register the server without enabling it');
  handle<McpAddOptions>(line, add, async (call) => (await import('./mcp_change.ts')).addMcpServer(call));
  const update = withConfiguration(
    mcp
      .command('update')
      .description('change the given fields of a server and keep the rest')
      .argument(...MCP_SERVER_ARGUMENT)
      .argument('[command...]', 'after --: the new program and its arguments'),
  )
    .option('--name <name>', 'the new name')
    .option('--newest', 'install the newest release of its npm package, if the command names none; change nothing else')
    .option('--yes', 'with --newest: do not ask')
    .option('--unset-env <name>', 'remove a variable (repeatable)', collectValue)
    .option('--unset-header <name>', 'remove a header (repeatable)', collectValue)
    .addOption(ownerOption());
  handle<McpUpdateOptions>(line, update, async (call) => (await import('./mcp_change.ts')).updateMcpServer(call));
  addSwitches(line, mcp);
}

function addSwitches(line: CommandLine, mcp: Command): void {
  for (const [name, description] of [
    ['enable', 'let gateways use a disabled server again'],
    ['disable', 'stop gateways from using a server, but keep it'],
  ] as const) {
    const command = mcp
      .command(name)
      .description(description)
      .argument(...MCP_SERVER_ARGUMENT)
      .addOption(ownerOption());
    handle<OwnerOption>(line, command, async (call) =>
      (await import('./mcp_change.ts')).switchMcpServer(call, name === 'enable'),
    );
  }
  const remove = withRemovalOptions(
    mcp
      .command('remove')
      .alias('rm')
      .description('remove a server and its credentials; names what stops working')
      .argument(...MCP_SERVER_ARGUMENT)
      .addOption(ownerOption()),
  );
  handle<OwnerOption & RemovalOptions>(line, remove, async (call) =>
    (await import('./mcp_change.ts')).removeMcpServer(call),
  );
}

/** The options that become fields of a configuration. */
function withConfiguration(command: Command): Command {
  return command
    .option('--description <text>', 'what it is for')
    .option(
      '--env <name[=value]>',
      'a variable for the program; a name without value is a credential, set with `svc mcp credential set` (repeatable)',
      collectValue,
    )
    .option('--url <url>', 'the URL of a remote server; {NAME} in its query is a credential')
    .option(
      '--header <header>',
      'a header for a remote server, "Name: value"; {NAME} in the value is a credential (repeatable)',
      collectValue,
    )
    .addOption(new Option('--transport <transport>', 'transport of a remote server').choices(MCP_TRANSPORTS))
    .option('--allow-tool <tool>', 'allow only these tools; "read_*" matches a prefix (repeatable)', collectValue)
    .option('--deny-tool <tool>', 'forbid these tools (repeatable)', collectValue)
    .option(
      '--approve-tool <tool>',
      'calls of these tools wait for an approval; "*" means all (repeatable)',
      collectValue,
    )
    .addOption(
      new Option(
        '--isolation <isolation>',
        'container: run it in a container; process: run it as you (default for a new server: a container, or bubblewrap where there is no engine, where this machine can)',
      ).choices(MCP_ISOLATIONS),
    );
}

function addCredential(line: CommandLine, mcp: Command): void {
  const credential = mcp
    .command('credential')
    .description("set or delete a server's credentials (values are never shown)");
  const set = withSecretSource(
    credential
      .command('set')
      .description('store or replace a credential')
      .argument(...MCP_SERVER_ARGUMENT)
      .argument('<name>', 'name of the variable, or the NAME that a header or URL uses'),
  ).addOption(ownerOption());
  handle<McpCredentialOptions>(line, set, async (call) => (await import('./mcp_credential.ts')).setMcpCredential(call));
  const mint = withSourceOptions(
    credential
      .command('mint')
      .description('have a credential minted by its provider when it is needed; the server is started again at its end')
      .argument(...MCP_SERVER_ARGUMENT)
      .argument('<name>', 'name of the credential, to which the server refers')
      .argument('<kind>', SOURCE_KINDS.join(', ')),
  ).addOption(ownerOption());
  handle<McpMintOptions>(line, mint, async (call) => (await import('./mcp_mint.ts')).mintMcpCredential(call));
  const unset = credential
    .command('unset')
    .alias('rm')
    .description('delete a stored credential')
    .argument(...MCP_SERVER_ARGUMENT)
    .argument('<name>')
    .addOption(ownerOption());
  handle<OwnerOption>(line, unset, async (call) => (await import('./mcp_credential.ts')).unsetMcpCredential(call));
}

function addAuthorize(line: CommandLine, mcp: Command): void {
  const authorize = withClientAuthentication(
    mcp
      .command('authorize')
      .description('sign in to a remote server in the browser, or sign in again')
      .argument(...MCP_SERVER_ARGUMENT)
      .option('--client-id <id>', 'an OAuth client, if the server does not support dynamic registration'),
    SECRET_AND_KEY_WAYS,
  )
    .option('--scope <scope>', 'replaces the scopes that the server asks for (repeatable)', collectValue)
    .option('--add-scope <scope>', 'asks for this scope besides those of the last sign-in (repeatable)', collectValue)
    .option(
      '--authorization-host <host>',
      "agree to sign in at this host, which is not the server's own (repeatable)",
      collectValue,
    )
    .option('--forget', 'delete the authorisation')
    .option('--no-wait', 'print the link and do not wait')
    .addOption(ownerOption());
  handle<McpAuthorizeOptions>(line, authorize, async (call) =>
    (await import('./mcp_authorize.ts')).authorizeMcpServer(call),
  );
}

function addTools(line: CommandLine, mcp: Command): void {
  const tools = mcp
    .command('tools')
    .description('show the tools of a server and what is allowed; with options, change that')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--allow <tool>', 'allow only these tools; "read_*" matches a prefix (repeatable)', collectValue)
    .option('--deny <tool>', 'forbid these tools (repeatable)', collectValue)
    .option('--approve <tool>', 'calls of these tools wait for an approval; "*" means all (repeatable)', collectValue)
    .option('--set <tool=choice>', 'allow, ask or deny one tool: "write_file=ask" (repeatable)', collectValue)
    .option('--reset', 'remove every rule first: all tools allowed, without approval')
    .option('--accept [tool...]', 'accept tools that are new or have changed, after showing them')
    .option('--yes', 'accept without asking')
    .addOption(ownerOption());
  handle<McpToolsOptions>(line, tools, async (call) => (await import('./mcp_tools.ts')).mcpTools(call));
}

function addRules(line: CommandLine, mcp: Command): void {
  const rules = mcp
    .command('rules')
    .description('show the rules of your enterprise for every server; with options, an admin changes them')
    .option(
      '--source <source>',
      'only servers from here may run: "npm:@acme/*", "oci:ghcr.io/acme/*", "host:*.acme.com", "registry:com.acme/*" (repeatable)',
      collectValue,
    )
    .option('--any-source', 'servers from everywhere may run')
    .addOption(new Option('--isolation <isolation>', 'the least isolation of a local server').choices(MCP_ISOLATIONS))
    .option('--pinned', 'only exact versions may run')
    .option('--no-pinned', 'other versions may run too')
    .option('--allow-tool <tool>', 'allow only these tools; "read_*" matches a prefix (repeatable)', collectValue)
    .option('--deny-tool <tool>', 'forbid these tools (repeatable)', collectValue)
    .option('--approve-tool <tool>', 'calls of these tools wait for an approval (repeatable)', collectValue)
    .option('--reset', 'remove every rule first')
    .option('--check', 'only show which servers the rules would stop')
    .option('--yes', 'save without asking');
  handle<McpRulesOptions>(line, rules, async (call) => (await import('./mcp_rules.ts')).mcpRules(call));
}

function addPolicy(line: CommandLine, mcp: Command): void {
  const policy = mcp.command('policy').description('keep the rules and the allowed tools of all servers in a file');
  const write = policy
    .command('export')
    .description('print the policy in force as YAML, as `svc mcp policy apply` reads it');
  handle(line, write, async (call) => (await import('./mcp_policy.ts')).exportPolicy(call));
  const apply = policy
    .command('apply')
    .description('make the rules and tools what a file says; shows the changes and asks')
    .requiredOption('-f, --file <file>', 'the file; - is stdin')
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'save without asking');
  handle<PolicyApplyOptions>(line, apply, async (call) => (await import('./mcp_policy.ts')).applyPolicy(call));
}

function addRollback(line: CommandLine, mcp: Command): void {
  const rollback = mcp
    .command('rollback')
    .description('list earlier configurations of a server; with --to, restore one')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--to <revision>', 'number of the revision')
    .addOption(ownerOption());
  handle<McpRollbackOptions>(line, rollback, async (call) =>
    (await import('./mcp_revisions.ts')).rollbackMcpServer(call),
  );
}

/** The clients of a hosted control plane's own MCP server. */
function addClients(line: CommandLine, mcp: Command): void {
  const list = mcp
    .command('clients')
    .description('list your MCP clients of a hosted control plane, and who connected each');
  handle(line, list, async (call) => (await import('./mcp_clients.ts')).listMcpClients(call));
  const end = mcp
    .command('disconnect')
    .description('disconnect an MCP client: its next call is refused')
    .argument('<id>', 'its id (mcc_...)');
  handle(line, end, async (call) => (await import('./mcp_clients.ts')).disconnectMcpClient(call));
}
