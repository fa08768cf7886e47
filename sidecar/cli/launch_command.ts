import { Option } from 'commander';
import { SANDBOX_PROXY_VALUES } from '../../shared/model/settings.ts';
import { LaunchError } from '../launch/launch_error.ts';
import { decideProxy, SANDBOX_MODES } from '../launch/launch_mode.ts';
import type { SignalSource } from '../launch/run_child.ts';
import { handle, several, type Call, type CommandLine } from './command_line.ts';
import { CliError, EXIT } from './exit_codes.ts';
import { launchRequest, type LaunchOptions, type LaunchRequest } from './launch_options.ts';
import { runProxied } from './launch_proxied.ts';
import { runUnproxied } from './launch_unproxied.ts';
import { sandboxSessions } from './sandbox_sessions.ts';

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
    .option('--workdir <path>', 'where the command starts, in the container')
    .option('--name <text>', 'a name for the session and its container')
    .option('--detach', 'start it and return; see svc sessions')
    .option('--relay', 'also serve programs that cannot send proxy credentials, such as Java and Chromium')
    .option('--ttl <length>', 'end the session after this long, such as 8h');
  handle<LaunchOptions>(line, launch, (call) => runLaunch(call, signals));
}

/** The values are checked by our own parsers, whose errors say what to write; the list is for the completion scripts. */
function known(flags: string, description: string, values: readonly string[]): Option {
  const option = new Option(flags, description);
  option.argChoices = [...values];
  return option;
}

async function runLaunch(call: Call<LaunchOptions>, signals: SignalSource): Promise<number> {
  const request = launchRequest(call);
  try {
    return await run(call, request, signals);
  } catch (error) {
    throw notStarted(error);
  }
}

/** 1 would be taken for the command's own exit status; a mistake on the command line and a missing sidecar keep theirs. */
function notStarted(error: unknown): unknown {
  if (error instanceof LaunchError) {
    return new CliError(error.exitCode ?? EXIT.notStarted, error.message, error.fixes);
  }
  if (!(error instanceof CliError) || error.exitCode !== EXIT.failed) return error;
  return new CliError(EXIT.notStarted, error.message, error.fixes);
}

/** What cannot be recorded does not run: without a sidecar every mode is refused. */
async function run(call: Call, request: LaunchRequest, signals: SignalSource): Promise<number> {
  const sessions = sandboxSessions(call);
  const decision = decideProxy(request.sandbox, request.proxy);
  if (decision.kind === 'proxied') return runProxied(call, request, sessions, signals);
  if (decision.kind === 'unproxied') return runUnproxied(call, request, decision.reason, { sessions, signals });
  await sessions.recordDisabled('preflight_failed', request.sandbox, request.image);
  throw new LaunchError({
    message: `--sandbox-proxy=on: the proxy is not supported with --sandbox=${request.sandbox}`,
    fixes: ['Use --sandbox=docker.', '--sandbox-proxy=off runs the command there without the proxy.'],
  });
}
