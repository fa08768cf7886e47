import { Option } from 'commander';
import { SANDBOX_PROXY_VALUES } from '../../shared/model/settings.ts';
import { SANDBOX_MODES } from '../../sandbox/launch/launch_mode.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { handle, several, type CommandLine } from '../command_line.ts';
import type { LaunchOptions } from './launch_options.ts';

/** `svc launch -- COMMAND`. */
export function addLaunchCommand(line: CommandLine, signals: SignalSource): void {
  const launch = line.program
    .command('launch')
    .description('run a command in a container whose HTTPS goes through the proxy')
    .usage('[options] -- COMMAND [ARGUMENT...]')
    .argument('<command...>', 'the command and its arguments, after --')
    .addOption(known('--sandbox <mode>', 'where it runs (default: docker, which alone is supported)', SANDBOX_MODES))
    .addOption(
      known('--sandbox-proxy <when>', 'use the proxy (default: $SVC_SANDBOX_PROXY, else auto)', SANDBOX_PROXY_VALUES),
    )
    .addOption(
      known('--egress <reach>', 'sealed: nothing but the proxy can be reached (default: open)', ['open', 'sealed']),
    )
    .option('--image <image>', 'image to run (default: $SVC_SANDBOX_IMAGE)')
    .option('--mount <host:container[:ro]>', 'mount a directory or file (repeatable)', several)
    .option('--no-default-mount', 'do not mount the working directory at /home/agent/workspace')
    .option('--env <name>', 'pass a variable of your environment on (repeatable)', several)
    .option(
      '--unsealed <env=vault://path,host=host,reason=text>',
      'put a credential into the environment, recorded as unsealed (repeatable)',
      several,
    )
    .option('--mcp <server>', 'let the agent use this MCP server of yours (repeatable)', several)
    .option('--workdir <path>', 'where the command starts, in the container')
    .option('--name <text>', 'a name for the session and its container')
    .option('--detach', 'start it and return; see svc sessions')
    .option('--relay', 'also serve programs that cannot send proxy credentials, such as Java and Chromium')
    .option('--ttl <length>', 'end the session after this long, such as 8h');
  // Loaded here: every other command starts faster.
  handle<LaunchOptions>(line, launch, async (call) => (await import('./launch_run.ts')).runLaunch(call, signals));
}

/** The values are checked by our own parsers, whose errors say what to write; the list is for the completion scripts. */
function known(flags: string, description: string, values: readonly string[]): Option {
  const option = new Option(flags, description);
  option.argChoices = [...values];
  return option;
}
