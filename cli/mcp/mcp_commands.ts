import { Option, type Command } from 'commander';
import { OWNERS } from '../../shared/model/host_binding.ts';
import { MCP_ISOLATIONS, MCP_TRANSPORTS } from '../../shared/model/mcp_server.ts';
import { handle, several, type CommandLine } from '../command_line.ts';
import type { McpAuthorizeOptions } from './mcp_authorize.ts';
import type { McpAddOptions, McpUpdateOptions } from './mcp_change.ts';
import type { McpCredentialOptions } from './mcp_credential.ts';
import type { McpRollbackOptions } from './mcp_revisions.ts';
import type { OwnerOption } from './mcp_lookup.ts';
import type { McpToolsOptions } from './mcp_tools.ts';

// What the commands do is loaded when they are used: every other command starts faster.

/** `svc mcp ...`: the configurations. Answers with the group, for what else there is to do with servers. */
export function addMcpCommands(line: CommandLine): Command {
  const mcp = line.program.command('mcp').description('MCP servers that agents may use');
  addList(line, mcp);
  addChanges(line, mcp);
  addCredential(line, mcp);
  addAuthorize(line, mcp);
  addTools(line, mcp);
  addRollback(line, mcp);
  return mcp;
}

/** The argument that names a server. */
export const MCP_SERVER_ARGUMENT = ['<server>', 'its name or id, as `svc mcp list` shows them'] as const;

/** `--owner`, where the enterprise and the caller may both have a server of a name. */
export function mcpOwnerOption(description = 'whose, when both have one of that name'): Option {
  return new Option('--owner <owner>', description).choices(OWNERS);
}

function addList(line: CommandLine, mcp: Command): void {
  const list = mcp
    .command('list')
    .alias('ls')
    .description('list the servers and their state on your machines')
    .addOption(mcpOwnerOption('only this namespace'));
  handle<OwnerOption>(line, list, async (call) => (await import('./mcp_views.ts')).listMcpServers(call));
  const show = mcp
    .command('show')
    .description('show a server: its command, its credentials, and warnings')
    .argument(...MCP_SERVER_ARGUMENT)
    .addOption(mcpOwnerOption());
  handle<OwnerOption>(line, show, async (call) => (await import('./mcp_views.ts')).showMcpServer(call));
}

function addChanges(line: CommandLine, mcp: Command): void {
  const add = withConfiguration(
    mcp
      .command('add')
      .description('register a server: a program with its arguments after --, or --url')
      .argument('<name>', 'lower-case letters, digits and "-"; the prefix of its tools')
      .argument('[command...]', 'after --: the program and its arguments, which no shell reads'),
  )
    .addOption(mcpOwnerOption('whose namespace (default: personal)').default('personal'))
    .option('--disabled', 'register it, and do not use it yet');
  handle<McpAddOptions>(line, add, async (call) => (await import('./mcp_change.ts')).addMcpServer(call));
  const update = withConfiguration(
    mcp
      .command('update')
      .description('change the given parts of a server, and keep the rest')
      .argument(...MCP_SERVER_ARGUMENT)
      .argument('[command...]', 'after --: another program and its arguments'),
  )
    .option('--name <name>', 'another name')
    .option('--unset-env <name>', 'take a variable away (repeatable)', several)
    .option('--unset-header <name>', 'take a header away (repeatable)', several)
    .addOption(mcpOwnerOption());
  handle<McpUpdateOptions>(line, update, async (call) => (await import('./mcp_change.ts')).updateMcpServer(call));
  addSwitches(line, mcp);
}

function addSwitches(line: CommandLine, mcp: Command): void {
  for (const [name, description] of [
    ['enable', 'let gateways use a server again'],
    ['disable', 'keep a server, but stop gateways from using it'],
  ] as const) {
    const command = mcp
      .command(name)
      .description(description)
      .argument(...MCP_SERVER_ARGUMENT)
      .addOption(mcpOwnerOption());
    handle<OwnerOption>(line, command, async (call) =>
      (await import('./mcp_change.ts')).switchMcpServer(call, name === 'enable'),
    );
  }
  const remove = mcp
    .command('remove')
    .alias('rm')
    .description('remove a server and its credentials')
    .argument(...MCP_SERVER_ARGUMENT)
    .addOption(mcpOwnerOption());
  handle<OwnerOption>(line, remove, async (call) => (await import('./mcp_change.ts')).removeMcpServer(call));
}

/** The options that become fields of a configuration. */
function withConfiguration(command: Command): Command {
  return command
    .option('--description <text>', 'what it is for')
    .option(
      '--env <name[=value]>',
      'a variable of the program; a name alone is a credential, set with `svc mcp credential set` (repeatable)',
      several,
    )
    .option('--url <url>', 'the URL of a remote server; {NAME} in its query is a credential')
    .option(
      '--header <header>',
      'a header for a remote server, "Name: value"; {NAME} in the value is a credential (repeatable)',
      several,
    )
    .addOption(new Option('--transport <transport>', 'of a remote server').choices(MCP_TRANSPORTS))
    .option('--allow-tool <tool>', 'only these tools; "read_*" is all that begin so (repeatable)', several)
    .option('--deny-tool <tool>', 'not these (repeatable)', several)
    .option('--approve-tool <tool>', 'calls of these wait for a person; "*" is all (repeatable)', several)
    .addOption(new Option('--isolation <isolation>', 'container: where Docker is there').choices(MCP_ISOLATIONS));
}

function addCredential(line: CommandLine, mcp: Command): void {
  const credential = mcp.command('credential').description("a server's credentials (their values are never shown)");
  const set = credential
    .command('set')
    .description('store a credential, or replace it')
    .argument(...MCP_SERVER_ARGUMENT)
    .argument('<name>', 'the name of the variable, or what a header refers to')
    .option('--stdin', 'read the value from stdin')
    .option('--file <file>', 'read the value from a file')
    .option('--keep-newline', 'keep a line break at the end (else one is dropped)')
    .addOption(new Option('--value [refused]').hideHelp())
    .addOption(mcpOwnerOption())
    .allowExcessArguments();
  handle<McpCredentialOptions>(line, set, async (call) => (await import('./mcp_credential.ts')).setMcpCredential(call));
  const unset = credential
    .command('unset')
    .alias('rm')
    .description('delete a stored credential')
    .argument(...MCP_SERVER_ARGUMENT)
    .argument('<name>')
    .addOption(mcpOwnerOption());
  handle<OwnerOption>(line, unset, async (call) => (await import('./mcp_credential.ts')).unsetMcpCredential(call));
}

function addAuthorize(line: CommandLine, mcp: Command): void {
  const authorize = mcp
    .command('authorize')
    .description('sign in to a remote server in the browser, or sign in again')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--client-id <id>', 'an OAuth client, where the server registers none by itself')
    .option('--client-secret-stdin', 'read its secret from stdin (else it is asked for; a public client has none)')
    .option('--public-client', 'the client has no secret')
    .addOption(
      new Option('--client-authentication <way>', 'how the secret is sent (default: post, in the body)').choices([
        'post',
        'basic',
      ]),
    )
    .option('--scope <scope>', 'in place of what the server asks for (repeatable)', several)
    .option('--authorization-host <host>', 'agree to sign in at this other host (repeatable)', several)
    .option('--forget', 'forget the authorisation')
    .option('--no-wait', 'print the link and return')
    .addOption(mcpOwnerOption());
  handle<McpAuthorizeOptions>(line, authorize, async (call) =>
    (await import('./mcp_authorize.ts')).authorizeMcpServer(call),
  );
}

function addTools(line: CommandLine, mcp: Command): void {
  const tools = mcp
    .command('tools')
    .description('show which tools of a server may be called; with options, change it')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--allow <tool>', 'only these; "read_*" is all that begin so (repeatable)', several)
    .option('--deny <tool>', 'not these (repeatable)', several)
    .option('--approve <tool>', 'calls of these wait for a person; "*" is all (repeatable)', several)
    .option('--reset', 'forget every rule first: all tools, without approval')
    .addOption(mcpOwnerOption());
  handle<McpToolsOptions>(line, tools, async (call) => (await import('./mcp_tools.ts')).mcpTools(call));
}

function addRollback(line: CommandLine, mcp: Command): void {
  const rollback = mcp
    .command('rollback')
    .description('list earlier configurations of a server; with --to, restore one')
    .argument(...MCP_SERVER_ARGUMENT)
    .option('--to <revision>', 'the number of a revision')
    .addOption(mcpOwnerOption());
  handle<McpRollbackOptions>(line, rollback, async (call) =>
    (await import('./mcp_revisions.ts')).rollbackMcpServer(call),
  );
}
