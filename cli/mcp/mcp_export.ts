import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MCP_SERVER_NAME } from '../../shared/model/mcp_server.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import {
  CLIENT_ALIASES,
  configurationWith,
  makeDirectory,
  mcpClients,
  type ClientServer,
  type McpClient,
} from './client_configuration.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isOnPath, ownProgram } from '../own_program.ts';
import { homeOf } from '../up/home.ts';
import { recordGateway } from './configured_gateway.ts';
import { replaceFile } from '../up/replace_file.ts';

export interface McpExportOptions {
  readonly client?: string;
  readonly list?: boolean;
  readonly write?: boolean;
  readonly project?: boolean;
  readonly file?: string;
  readonly name: string;
}

/**
 * `svc mcp export`: configures a client to start `svc mcp gateway`. The configuration contains only a command. Credentials
 * reach a server when the gateway starts it and are in no client's file.
 */
export async function exportMcp(call: Call<McpExportOptions>): Promise<undefined> {
  const { context, options } = call;
  const clients = await mcpClients(context.workingDirectory);
  if (options.list === true) {
    listClients(call, clients);
    return undefined;
  }
  const client = chooseClient(options.client, clients);
  const path = choosePath(call, client);
  const server = gatewayServer(call);
  const scope = { project: options.project === true, workingDirectory: context.workingDirectory };
  const current = options.write === true ? readConfiguration(path) : null;
  const text = await configurationWith(client, server, current, scope);
  if (!text.ok) {
    throw new CliError(EXIT.failed, `${path} cannot be changed: ${text.error}`, [
      'Fix the file, or run without --write to print the text for it.',
    ]);
  }
  if (options.write === true) await writeConfiguration(call, client, path, { current, text: text.value });
  else printConfiguration(call, client, { path, text: text.value, server });
  return undefined;
}

function listClients({ print }: Call<McpExportOptions>, clients: readonly McpClient[]): void {
  const rows = clients.map((client) => ({
    client: client.name,
    aliases: [...CLIENT_ALIASES].filter(([, name]) => name === client.name).map(([alias]) => alias),
    title: client.title,
    path: client.path,
    project_path: client.projectPath,
    exists: statSync(client.path, { throwIfNoEntry: false }) !== undefined,
  }));
  const columns = [
    { title: 'CLIENT', cell: (row: (typeof rows)[number]) => [row.client, ...row.aliases].join(', ') },
    { title: 'NAME', cell: (row: (typeof rows)[number]) => row.title },
    { title: 'THERE', cell: (row: (typeof rows)[number]) => (row.exists ? 'yes' : 'no') },
    { title: 'CONFIGURATION', cell: (row: (typeof rows)[number]) => row.path },
  ];
  print.rows(rows, rows, columns, 'no client is known');
}

function chooseClient(name: string | undefined, clients: readonly McpClient[]): McpClient {
  const known: readonly string[] = clients.map((client) => client.name);
  if (name === undefined) {
    throw new CliError(EXIT.usage, '--client is missing', [
      `Known: ${known.join(', ')}`,
      '`svc mcp export --list` lists the clients and their configurations.',
    ]);
  }
  const meant = CLIENT_ALIASES.get(name) ?? name;
  const found = clients.find((client) => client.name === meant);
  if (found !== undefined) return found;
  throw new CliError(
    EXIT.usage,
    `--client is not a known client${didYouMean(name, [...known, ...CLIENT_ALIASES.keys()])}`,
    [`Known: ${known.join(', ')}`],
  );
}

function choosePath({ context, options }: Call<McpExportOptions>, client: McpClient): string {
  if (options.file !== undefined) {
    if (options.file === '') throw new CliError(EXIT.usage, '--file is empty: give the configuration to write');
    return resolve(context.workingDirectory, options.file);
  }
  if (options.project !== true) return client.path;
  if (client.projectPath !== null) return client.projectPath;
  throw new CliError(EXIT.usage, `${client.title} has no project configuration: leave out --project`);
}

/** The command `svc mcp gateway` of this checkout, with this call's state directory. */
function gatewayServer(call: Call<McpExportOptions>): ClientServer {
  const { context, options } = call;
  if (!MCP_SERVER_NAME.test(options.name)) {
    throw new CliError(EXIT.usage, '--name is invalid: use up to 48 of a-z, 0-9 and "-"');
  }
  const home = homeOf(context, options);
  const isDefaultHome = home === resolve(context.userHome, '.svc');
  const args = ['mcp', 'gateway', ...(isDefaultHome ? [] : ['--home', home])];
  return { name: options.name, command: programOf(context, options.project === true), args };
}

/**
 * The absolute path, since a desktop client does not have a shell's PATH. A project's file is shared with other machines, so it
 * uses `svc` if that is this program.
 */
function programOf(context: CliContext, isProject: boolean): string {
  return isProject && isOnPath(context) ? 'svc' : ownProgram(context);
}

function readConfiguration(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  if (!stats.isFile()) throw new CliError(EXIT.failed, `${path} is not a file`);
  return readFileSync(path, 'utf8');
}

async function writeConfiguration(
  call: Call<McpExportOptions>,
  client: McpClient,
  path: string,
  { current, text }: { readonly current: string | null; readonly text: string },
): Promise<void> {
  const { context, options, print } = call;
  const isSame = current === text;
  if (!isSame) makeDirectory(dirname(path));
  const { backup } = isSame ? { backup: null } : await replaceFile(path, text, context.now());
  const project = options.project === true ? context.workingDirectory : null;
  await recordGateway(homeOf(context, options), { client: client.name, path, project }, context.now());
  print.data({ client: client.name, path, changed: !isSame, backup }, () => `${path}\n`);
  if (isSame) print.note(`${client.title} already starts the gateway.`);
  else
    print.note(
      `Restart ${client.title} to use the gateway.${backup === null ? '' : ` Backup of the old file: ${backup}`}`,
    );
  if (client.format !== 'json' && current?.includes('#') === true && !isSame)
    print.note('Comments are kept only in the backup.');
}

function printConfiguration(
  { print }: Call<McpExportOptions>,
  client: McpClient,
  { path, text, server }: { readonly path: string; readonly text: string; readonly server: ClientServer },
): void {
  const { name, command, args } = server;
  const value = { client: client.name, path, format: client.format, name, command, args, configuration: text };
  print.data(value, () => (text.endsWith('\n') ? text : `${text}\n`));
  print.note(`Add this to ${path}, or use --write.`);
}
