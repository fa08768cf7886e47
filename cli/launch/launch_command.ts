import { type Command, Option } from 'commander';
import { EGRESS_MODES } from '../../shared/model/egress.ts';
import { SANDBOX_PROXY_VALUES } from '../../shared/model/settings.ts';
import { SANDBOX_MODES } from '../../sandbox/launch/launch_mode.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import { AGENT_FLAG } from '../command_separator.ts';
import { PLAIN_HTTP_OPTION, PLAIN_HTTP_TEXT } from './hosts/plain_http_option.ts';
import { addLimitOptions } from './limit_options.ts';
import { SCOPE_OPTION, SCOPE_TEXT, USE_OPTION, USE_TEXT } from './use_option.ts';
import type { LaunchOptions } from './launch_options.ts';

/** `svc launch -- COMMAND`. */
export function addLaunchCommand(line: CommandLine, signals: SignalSource): void {
  const launch = line.program
    .command('launch')
    .description(
      'run a command, or an agent by its name (`svc agents`), in a container; its HTTPS goes through the proxy',
    )
    .usage('[options] -- COMMAND [ARGUMENT...], or [options] AGENT [ARGUMENT...]')
    .argument('<command...>', 'the command and its arguments, after --')
    .addOption(
      optionOfValues(
        '--sandbox <mode>',
        'engine of the container (default: $SVC_SANDBOX_ENGINE, else the one that works); none: no container, and no proxy',
        SANDBOX_MODES,
      ),
    )
    .addOption(
      optionOfValues(
        '--sandbox-proxy <when>',
        'whether to use the proxy (default: $SVC_SANDBOX_PROXY, else auto)',
        SANDBOX_PROXY_VALUES,
      ),
    )
    .addOption(
      optionOfValues(
        '--egress <reach>',
        'sealed: only bound and allowed hosts; sealed,public: every public host; both only through the proxy (default: open)',
        EGRESS_MODES,
      ),
    )
    .option(
      '--allow <host>',
      'with sealed egress: also allow this host, such as *.example.com, or a private one by its exact name; with a port (HOST:8443), for every egress (repeatable)',
      collectValue,
    )
    .option(PLAIN_HTTP_OPTION, PLAIN_HTTP_TEXT, collectValue)
    .option('--image <image>', 'image to run (default: $SVC_SANDBOX_IMAGE)')
    .option('--mount <host:container[:ro]>', 'mount a directory or file (repeatable)', collectValue)
    .option('--no-default-mount', 'do not mount the working directory (at /home/agent/workspace)')
    .option('--env <name>', 'pass on a variable of your environment (repeatable)', collectValue)
    .option(
      '--unsealed <env=reference,...>',
      'put a credential into the environment: ENV=vault://PATH,host=HOST,reason=TEXT; recorded as unsealed (repeatable)',
      collectValue,
    )
    .option('--mcp <server>', 'let the agent use this MCP server (repeatable)', collectValue)
    .option('--workdir <path>', 'working directory of the command, in the container')
    .option('--name <text>', 'a name for the session and its container')
    .option('--detach', 'start the container and return; see svc sessions')
    .option('--relay', 'also support programs that cannot send proxy credentials, such as Java and Chromium')
    .option('--ttl <length>', 'end the session after this long, such as 8h');
  addSecretOptions(launch);
  addAgentOptions(launch);
  // Loaded on use, so that other commands start faster.
  handle<LaunchOptions>(line, launch, async (call) => {
    const { agent } = call.options;
    if (agent === undefined) return (await import('./launch_run.ts')).runLaunch(call, signals);
    const { launchAgent } = await import('../agents/agent_launch.ts');
    return launchAgent({ ...call, args: call.args.slice(1) }, signals, agent);
  });
}

function addSecretOptions(launch: Command): void {
  launch.option(USE_OPTION, USE_TEXT, collectValue).option(SCOPE_OPTION, SCOPE_TEXT, collectValue);
  addLimitOptions(launch);
}

function addAgentOptions(launch: Command): void {
  launch
    .option('--login <name>', 'agents: use this one of its logins, such as key, subscription or account')
    .option('--base <image>', 'agents: make the image from this one (default: $SVC_AGENT_BASE_IMAGE, else node:24)')
    .option('--rebuild', 'agents: make the image anew')
    .option('--forget', "agents: remove the agent's home of this project folder, and run nothing")
    .option('--quiet', 'agents: do not print the number of requests at the end')
    .addOption(new Option(`${AGENT_FLAG} <name>`).hideHelp());
}

/** The choices are only for completion scripts; our own parsers check the values, with better errors. */
function optionOfValues(flags: string, description: string, values: readonly string[]): Option {
  const option = new Option(flags, description);
  option.argChoices = [...values];
  return option;
}
