import { LaunchError } from '../../sandbox/launch/launch_error.ts';
import { decideProxy } from '../../sandbox/launch/launch_mode.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { launchRequest, type LaunchOptions, type LaunchRequest } from './launch_options.ts';
import { runProxied } from './launch_proxied.ts';
import { runUnproxied } from './launch_unproxied.ts';
import { sandboxSessions } from './sandbox_sessions.ts';

/** Runs `svc launch`; returns the exit code. */
export async function runLaunch(call: Call<LaunchOptions>, signals: SignalSource): Promise<number> {
  const request = launchRequest(call);
  try {
    return await run(call, request, signals);
  } catch (error) {
    throw toNotStarted(error);
  }
}

/** Maps a failure to 125, since 1 would look like the command's own exit status. Usage errors and a missing sidecar keep their codes. */
export function toNotStarted(error: unknown): unknown {
  if (error instanceof LaunchError) {
    return new CliError(error.exitCode ?? EXIT.notStarted, error.message, error.fixes);
  }
  if (!(error instanceof CliError) || error.exitCode !== EXIT.failed) return error;
  return new CliError(EXIT.notStarted, error.message, error.fixes);
}

/** Nothing runs that cannot be recorded: without a sidecar, every mode is refused. */
async function run(call: Call<LaunchOptions>, request: LaunchRequest, signals: SignalSource): Promise<number> {
  const sessions = sandboxSessions(call);
  const decision = decideProxy(request.sandbox, request.proxy);
  if (decision.kind === 'proxied') return runProxied(call, request, sessions, signals);
  if (decision.kind === 'unproxied') return runUnproxied(call, request, decision.reason, { sessions, signals });
  for (const reason of decision.reasons) await sessions.recordDisabled(reason, request.sandbox, request.image);
  throw new LaunchError({
    message: `--sandbox-proxy=on: the proxy is not supported with --sandbox=${request.sandbox}`,
    fixes: ['Use --sandbox=docker.', '--sandbox-proxy=off runs the command there without the proxy.'],
  });
}
