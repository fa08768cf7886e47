import { Command } from 'commander';
import type { SignalSource } from '../sandbox/engine/run_child.ts';
import { commandLine, type CommandLine } from './command_line.ts';
import { GLOBAL_WITH_VALUE } from './command_separator.ts';
import type { CliContext } from './context.ts';
import { EXIT_CODE_ROWS } from './exit_codes.ts';

/** Adds a group's commands to the command line. */
type AddGroup = (line: CommandLine, signals: SignalSource) => void;

/** The names of a group's top-level commands, and how the group is loaded. */
type Group = readonly [names: readonly string[], load: () => Promise<AddGroup>];

/** Every command group, in the order of `svc --help`. Only the group of the command that is called is loaded. */
const GROUPS: readonly Group[] = [
  [['up', 'sidecar'], async () => (await import('./up/up_command.ts')).addUpCommands],
  [['down'], async () => (await import('./up/down_command.ts')).addDownCommand],
  [['logs'], async () => (await import('./up/logs_command.ts')).addLogsCommand],
  [['console'], async () => (await import('./up/console_command.ts')).addConsoleCommand],
  [['login'], async () => (await import('./sign_in/login_command.ts')).addLoginCommand],
  [['logout'], async () => (await import('./sign_in/logout_command.ts')).addLogoutCommand],
  [['token'], async () => (await import('./sign_in/token_commands.ts')).addTokenCommands],
  [['keys'], async () => (await import('./vault/keys_commands.ts')).addKeysCommands],
  [['vault'], async () => (await import('./vault/vault_commands.ts')).addVaultCommands],
  [['status'], async () => (await import('./up/status_command.ts')).addStatusCommand],
  [['doctor'], async () => (await import('./up/doctor_command.ts')).addDoctorCommand],
  [['seal'], async () => (await import('./seal/seal_command.ts')).addSealCommand],
  [['secret'], async () => (await import('./bindings/secret_commands.ts')).addSecretCommands],
  [['binding'], async () => (await import('./bindings/binding_commands.ts')).addBindingCommands],
  [['connector'], async () => (await import('./connectors/connector_commands.ts')).addConnectorCommands],
  [['mcp'], loadMcpCommands],
  [['approvals'], async () => (await import('./approvals/approvals_commands.ts')).addApprovalsCommands],
  [['run'], async () => (await import('./launch/run_command.ts')).addRunCommand],
  [['launch'], async () => (await import('./launch/launch_command.ts')).addLaunchCommand],
  [['sessions'], async () => (await import('./launch/sessions_commands.ts')).addSessionsCommands],
  [['image'], loadImageCommands],
  [['plan'], async () => (await import('./plan/plan_commands.ts')).addPlanCommands],
  [['explain'], async () => (await import('./bindings/explain_command.ts')).addExplainCommand],
  [['audit'], async () => (await import('./audit/audit_commands.ts')).addAuditCommands],
  [['report'], async () => (await import('./audit/report_command.ts')).addReportCommand],
  [['api'], async () => (await import('./terminal/api_command.ts')).addApiCommand],
  [['export'], async () => (await import('./bindings/export_command.ts')).addExportCommand],
  [['db'], async () => (await import('./vault/db_commands.ts')).addDbCommands],
];

async function loadImageCommands(): Promise<AddGroup> {
  const { addImageCommands } = await import('./launch/image_commands.ts');
  return (line) => addImageCommands(line);
}

async function loadMcpCommands(): Promise<AddGroup> {
  const [commands, marketplace, gateway, exported] = await Promise.all([
    import('./mcp/mcp_commands.ts'),
    import('./mcp/mcp_marketplace_commands.ts'),
    import('./mcp/mcp_gateway_commands.ts'),
    import('./mcp/mcp_export_command.ts'),
  ]);
  return (line) => {
    const mcp = commands.addMcpCommands(line);
    marketplace.addMcpMarketplaceCommands(line, mcp);
    gateway.addMcpGatewayCommands(line, mcp);
    exported.addMcpExportCommand(line, mcp);
  };
}

/** The command tree: whole, or with `argv` as much of it as these arguments need. */
export async function buildProgram(
  context: CliContext,
  signals: SignalSource,
  argv: readonly string[] | null = null,
): Promise<CommandLine> {
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
  const groups = argv === null ? GROUPS : groupsFor(argv);
  const added = await Promise.all(groups.map(async ([, load]) => await load()));
  for (const add of added) add(line, signals);
  if (groups === GROUPS) {
    const { addCompletionCommand } = await import('./completion.ts');
    addCompletionCommand(program, (script) => {
      context.stdout.write(script);
    });
  }
  return line;
}

/** The group of the command that is called; all groups where none is known, such as for `--help` and for a mistyped name. */
function groupsFor(argv: readonly string[]): readonly Group[] {
  const name = findCalledCommand(argv);
  if (name === '--version') return [];
  const group = GROUPS.find(([names]) => name !== null && names.includes(name));
  return group === undefined ? GROUPS : [group];
}

/** The first argument that is no global option or its value; null where there is none. */
function findCalledCommand(argv: readonly string[]): string | null {
  for (let at = 0; at < argv.length; at += 1) {
    const arg = argv[at] ?? '';
    if (GLOBAL_WITH_VALUE.has(arg)) at += 1;
    else if (arg !== '--json' && !GLOBAL_WITH_VALUE.has(arg.split('=', 1)[0] ?? '')) return arg;
  }
  return null;
}

function exitCodesText(): string {
  const width = Math.max(...EXIT_CODE_ROWS.map(([code]) => code.length));
  const lines = EXIT_CODE_ROWS.map(([code, meaning]) => `  ${code.padEnd(width)}  ${meaning}`);
  return ['', 'Exit codes:', ...lines].join('\n');
}
