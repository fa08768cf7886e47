import type { Command } from 'commander';
import { handle, type CommandLine } from '../command_line.ts';
import type { McpExportOptions } from './mcp_export.ts';

// What the command does is loaded when it is used: every other command starts faster.

/** `svc mcp export`. */
export function addMcpExportCommand(line: CommandLine, mcp: Command): void {
  const command = mcp
    .command('export')
    .description("print a client's configuration that starts `svc mcp gateway`, or write it")
    .option('--client <name>', 'claude, cursor, vscode, codex, ...: see --list')
    .option('--list', 'list the clients, and where each is configured')
    .option('--write', "add it to the client's file, and keep a copy of that as it was")
    .option('--project', "the configuration of the working directory, not the user's")
    .option('--file <path>', "another file than the client's usual one")
    .option('--name <name>', 'what the client calls the gateway', 'svc');
  handle<McpExportOptions>(line, command, async (call) => (await import('./mcp_export.ts')).exportMcp(call));
}
