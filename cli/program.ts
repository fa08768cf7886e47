import { Command } from 'commander';
import type { SignalSource } from '../sandbox/engine/run_child.ts';
import { AGENT_TITLES } from './agents/agent_names.ts';
import { commandLine, type CommandLine } from './command_line.ts';
import { GLOBAL_WITH_VALUE } from './command_separator.ts';
import type { CliContext } from './context.ts';
import { CliError, EXIT_CODE_ROWS } from './exit_codes.ts';

/** Adds a group's commands to the command line. */
type AddGroup = (line: CommandLine, signals: SignalSource) => void;

/** The names of a group's top-level commands, and how the group is loaded. */
type Group = readonly [names: readonly string[], load: () => Promise<AddGroup>];

/** Every command group, in the order of `svc --help`. Only the group of the command that is called is loaded. */
const GROUPS: readonly Group[] = [
  [['up', 'sidecar'], async () => (await import('./up/up_command.ts')).addUpCommands],
  [['down'], async () => (await import('./up/down_command.ts')).addDownCommand],
  [['service'], async () => (await import('./service/service_commands.ts')).addServiceCommands],
  [['panic'], async () => (await import('./teardown/panic_command.ts')).addPanicCommand],
  [['upgrade'], async () => (await import('./upgrade/upgrade_command.ts')).addUpgradeCommand],
  [['uninstall'], async () => (await import('./teardown/uninstall_command.ts')).addUninstallCommand],
  [['logs'], async () => (await import('./up/logs_command.ts')).addLogsCommand],
  [['console'], async () => (await import('./sign_in/console_command.ts')).addConsoleCommand],
  [['login'], async () => (await import('./sign_in/login_command.ts')).addLoginCommand],
  [['logout'], async () => (await import('./sign_in/logout_command.ts')).addLogoutCommand],
  [['token'], async () => (await import('./sign_in/token_commands.ts')).addTokenCommands],
  [['account'], async () => (await import('./members/account_commands.ts')).addAccountCommands],
  [['members', 'enterprise'], async () => (await import('./members/members_commands.ts')).addMembersCommands],
  [['scim'], async () => (await import('./members/scim_commands.ts')).addScimCommands],
  [['group'], async () => (await import('./members/group_commands.ts')).addGroupCommands],
  [
    ['service-account'],
    async () => (await import('./service_accounts/service_account_commands.ts')).addServiceAccountCommands,
  ],
  [['share'], async () => (await import('./members/share_commands.ts')).addShareCommands],
  [['keys'], async () => (await import('./vault/keys_commands.ts')).addKeysCommands],
  [['vault'], async () => (await import('./vault/vault_commands.ts')).addVaultCommands],
  [['status'], async () => (await import('./up/status_command.ts')).addStatusCommand],
  [['doctor'], async () => (await import('./up/doctor_command.ts')).addDoctorCommand],
  [['seal'], async () => (await import('./seal/seal_command.ts')).addSealCommand],
  [['secret'], async () => (await import('./bindings/secret_commands.ts')).addSecretCommands],
  [['binding'], async () => (await import('./bindings/binding_commands.ts')).addBindingCommands],
  [['cert'], async () => (await import('./certificates/cert_commands.ts')).addCertCommands],
  [['connector'], async () => (await import('./connectors/connector_commands.ts')).addConnectorCommands],
  [['mcp'], loadMcpCommands],
  [['approvals'], async () => (await import('./approvals/approvals_commands.ts')).addApprovalsCommands],
  [['agents'], async () => (await import('./agents/agents_commands.ts')).addAgentsCommand],
  ...Object.keys(AGENT_TITLES).map(agentGroup),
  [['run'], async () => (await import('./launch/run_command.ts')).addRunCommand],
  [['join'], async () => (await import('./service_accounts/join_command.ts')).addJoinCommand],
  [['launch'], async () => (await import('./launch/launch_command.ts')).addLaunchCommand],
  [['sandbox'], async () => (await import('./sandbox/sandbox_command.ts')).addSandboxCommands],
  [['allow'], async () => (await import('./launch/hosts/allow_command.ts')).addAllowCommand],
  [['tunnel'], async () => (await import('./launch/hosts/tunnel_command.ts')).addTunnelCommands],
  [['trust'], async () => (await import('./launch/trust_command.ts')).addTrustCommand],
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

/** `svc NAME` for the profile of an agent. */
function agentGroup(name: string): Group {
  return [
    [name],
    async () => {
      const { addAgentCommand } = await import('./agents/agents_commands.ts');
      return (line, signals) => addAgentCommand(line, signals, name);
    },
  ];
}

async function loadImageCommands(): Promise<AddGroup> {
  const { addImageCommands } = await import('./launch/image/image_commands.ts');
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
  argv: readonly string[] | null,
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
  const called = argv === null ? null : findCalledCommand(argv);
  const own = await ownAgents(context, argv ?? [], called);
  const isAgent = (word: string): boolean => Object.hasOwn(AGENT_TITLES, word) || own.includes(word);
  const line = commandLine(context, program, isAgent);
  const known = [...GROUPS, ...own.filter((name) => !isKnown(name)).map(agentGroup)];
  const groups = called === null ? known : groupsFor(called, known);
  const added = await Promise.all(groups.map(async ([, load]) => await load()));
  for (const add of added) add(line, signals);
  if (groups === known) {
    const { addCompletionCommand } = await import('./completion.ts');
    addCompletionCommand(program, (script) => {
      context.stdout.write(script);
    });
  }
  return line;
}

/** The group of the command that is called; all groups where none is known, such as for `--help` and for a mistyped name. */
function groupsFor(name: string, known: readonly Group[]): readonly Group[] {
  if (name === '--version') return [];
  const group = known.find(([names]) => names.includes(name));
  return group === undefined ? known : [group];
}

function isKnown(name: string | null): boolean {
  return GROUPS.some(([names]) => name !== null && names.includes(name));
}

/** The user's own profiles. They are looked for only where they matter: for `svc run` and `svc launch`, and where the command is none of svc's. */
async function ownAgents(
  context: CliContext,
  argv: readonly string[],
  called: string | null,
): Promise<readonly string[]> {
  if (called === '--version' || (called !== 'run' && called !== 'launch' && isKnown(called))) return [];
  const [{ listOwnNames }, { homeOf }] = await Promise.all([import('./agents/own_names.ts'), import('./up/home.ts')]);
  const home = globalValue(argv, '--home');
  try {
    return listOwnNames(homeOf(context, home === null || home === '' ? {} : { home }));
  } catch (error) {
    // The command itself says what is wrong with a setting.
    if (error instanceof CliError) return [];
    throw error;
  }
}

/** The value of a global option before the command. */
function globalValue(argv: readonly string[], option: string): string | null {
  for (let at = 0; at < argv.length; at += 1) {
    const [name = '', value] = (argv[at] ?? '').split(/=(.*)/s);
    if (name === option) return value ?? argv[at + 1] ?? null;
    if (GLOBAL_WITH_VALUE.has(argv[at] ?? '')) at += 1;
    else if (!name.startsWith('-')) return null;
  }
  return null;
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
