import type { Command } from 'commander';
import { handle, type CommandLine } from '../command_line.ts';
import type { McpExportOptions } from './mcp_export.ts';

// The action is loaded on use, so that other commands start faster.

/** `svc mcp export`. */
export function addMcpExportCommand(line: CommandLine, mcp: Command): void {
  const command = mcp
    .command('export')
    .description("print or write a client's configuration that starts `svc mcp gateway`")
    .option('--client <name>', 'claude, cursor, vscode, codex, ...: see --list')
    .option('--list', 'list the clients and the paths of their configurations')
    .option('--write', "write it to the client's file, and keep a backup")
    .option('--project', "the project's configuration in the working directory, not the user's")
    .option('--file <path>', "a file other than the client's default")
    .option('--name <name>', "the gateway's name in the client", 'svc');
  handle<McpExportOptions>(line, command, async (call) => (await import('./mcp_export.ts')).exportMcp(call));
}
