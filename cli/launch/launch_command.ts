import { Option } from 'commander';
import { EGRESS_MODES } from '../../shared/model/egress.ts';
import { SANDBOX_PROXY_VALUES } from '../../shared/model/settings.ts';
import { SANDBOX_MODES } from '../../sandbox/launch/launch_mode.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import type { LaunchOptions } from './launch_options.ts';

/** `svc launch -- COMMAND`. */
export function addLaunchCommand(line: CommandLine, signals: SignalSource): void {
  const launch = line.program
    .command('launch')
    .description('run a command in a container; its HTTPS goes through the proxy')
    .usage('[options] -- COMMAND [ARGUMENT...]')
    .argument('<command...>', 'the command and its arguments, after --')
    .addOption(
      optionOfValues(
        '--sandbox <mode>',
        'where the command runs (default: docker, the only supported mode)',
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
      'with --egress=sealed: also allow this host, such as *.example.com (repeatable)',
      collectValue,
    )
    .option('--image <image>', 'image to run (default: $SVC_SANDBOX_IMAGE)')
    .option('--mount <host:container[:ro]>', 'mount a directory or file (repeatable)', collectValue)
    .option('--no-default-mount', 'do not mount the working directory (at /home/agent/workspace)')
    .option('--env <name>', 'pass on a variable of your environment (repeatable)', collectValue)
    .option(
      '--unsealed <env=vault://path,host=host,reason=text>',
      'put a credential into the environment; recorded as unsealed (repeatable)',
      collectValue,
    )
    .option('--mcp <server>', 'let the agent use this MCP server (repeatable)', collectValue)
    .option('--workdir <path>', 'working directory of the command, in the container')
    .option('--name <text>', 'a name for the session and its container')
    .option('--detach', 'start the container and return; see svc sessions')
    .option('--relay', 'also support programs that cannot send proxy credentials, such as Java and Chromium')
    .option('--ttl <length>', 'end the session after this long, such as 8h');
  // Loaded on use, so that other commands start faster.
  handle<LaunchOptions>(line, launch, async (call) => (await import('./launch_run.ts')).runLaunch(call, signals));
}

/** The choices are only for completion scripts; our own parsers check the values, with better errors. */
function optionOfValues(flags: string, description: string, values: readonly string[]): Option {
  const option = new Option(flags, description);
  option.argChoices = [...values];
  return option;
}
