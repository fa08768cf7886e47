import { Command } from 'commander';
import type { SignalSource } from '../sandbox/engine/run_child.ts';
import { addApiCommand } from './terminal/api_command.ts';
import { addApprovalsCommands } from './approvals/approvals_commands.ts';
import { addAuditCommands } from './audit/audit_commands.ts';
import { addBindingCommands } from './bindings/binding_commands.ts';
import { commandLine, type CommandLine } from './command_line.ts';
import { addCompletionCommand } from './completion.ts';
import { addConnectorCommands } from './connectors/connector_commands.ts';
import { addConsoleCommand } from './up/console_command.ts';
import type { CliContext } from './context.ts';
import { addDbCommands } from './vault/db_commands.ts';
import { addDoctorCommand } from './up/doctor_command.ts';
import { EXIT_CODE_ROWS } from './exit_codes.ts';
import { addExplainCommand } from './bindings/explain_command.ts';
import { addExportCommand } from './bindings/export_command.ts';
import { addImageCommands } from './launch/image_commands.ts';
import { addLoginCommand } from './sign_in/login_command.ts';
import { addLogoutCommand } from './sign_in/logout_command.ts';
import { addKeysCommands } from './vault/keys_commands.ts';
import { addVaultCommands } from './vault/vault_commands.ts';
import { addMcpCommands } from './mcp/mcp_commands.ts';
import { addMcpExportCommand } from './mcp/mcp_export_command.ts';
import { addMcpGatewayCommands } from './mcp/mcp_gateway_commands.ts';
import { addMcpMarketplaceCommands } from './mcp/mcp_marketplace_commands.ts';
import { addLaunchCommand } from './launch/launch_command.ts';
import { addReportCommand } from './audit/report_command.ts';
import { addPlanCommands } from './plan/plan_commands.ts';
import { addRunCommand } from './launch/run_command.ts';
import { addSecretCommands } from './bindings/secret_commands.ts';
import { addSessionsCommands } from './launch/sessions_commands.ts';
import { addStatusCommand } from './up/status_command.ts';
import { addTokenCommands } from './sign_in/token_commands.ts';
import { addUpCommands } from './up/up_command.ts';

/** The whole command tree. */
export function buildProgram(context: CliContext, signals: SignalSource): CommandLine {
  const program = new Command('svc')
    .description('Keeps credentials away from coding agents: a proxy adds them to HTTPS requests.')
    .version(context.version, '--version', 'print the version')
    .option('--home <dir>', 'state directory (default: $SVC_HOME, else ~/.svc)')
    .option(
      '--control <url>',
      'control plane (default: $SVC_CONTROL_URL, else what `svc up` started or `svc login` signed in to)',
    )
    .option('--json', 'print data as JSON')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', exitCodesText());
  const line = commandLine(context, program);
  addUpCommands(line);
  addConsoleCommand(line);
  addLoginCommand(line);
  addLogoutCommand(line);
  addTokenCommands(line);
  addKeysCommands(line);
  addVaultCommands(line);
  addStatusCommand(line);
  addDoctorCommand(line);
  addSecretCommands(line);
  addBindingCommands(line);
  addConnectorCommands(line);
  const mcp = addMcpCommands(line);
  addMcpMarketplaceCommands(line, mcp);
  addMcpGatewayCommands(line, mcp);
  addMcpExportCommand(line, mcp);
  addApprovalsCommands(line);
  addRunCommand(line, signals);
  addLaunchCommand(line, signals);
  addSessionsCommands(line, signals);
  addImageCommands(line);
  addPlanCommands(line);
  addExplainCommand(line);
  addAuditCommands(line);
  addReportCommand(line);
  addApiCommand(line);
  addExportCommand(line);
  addDbCommands(line);
  addCompletionCommand(program, (script) => {
    context.stdout.write(script);
  });
  return line;
}

function exitCodesText(): string {
  const width = Math.max(...EXIT_CODE_ROWS.map(([code]) => code.length));
  const lines = EXIT_CODE_ROWS.map(([code, meaning]) => `  ${code.padEnd(width)}  ${meaning}`);
  return ['', 'Exit codes:', ...lines].join('\n');
}
