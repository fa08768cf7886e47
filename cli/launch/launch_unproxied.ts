import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { valueOrLaunchError } from '../../sandbox/launch/launch_error.ts';
import type { SandboxSessions } from '../../sandbox/launch/launch_ports.ts';
import { launchUnproxied } from '../../sandbox/launch/launch_unproxied.ts';
import { exitStatusOf, runChild, type SignalSource } from '../../sandbox/engine/run_child.ts';
import { environmentWithoutProxy } from '../../sandbox/launch/session_environment.ts';
import type { Call } from '../command_line.ts';
import { launchMounts, launchVariables } from './launch_inputs.ts';
import type { LaunchRequest } from './launch_options.ts';
import { callPorts, wantsTty } from './call_ports.ts';

type Reason = 'user_opt_out' | 'unsupported_sandbox_mode';
interface LaunchServices {
  readonly sessions: SandboxSessions;
  readonly signals: SignalSource;
}

/** Launches without the proxy, after recording why. */
export async function runUnproxied(
  call: Call,
  request: LaunchRequest,
  reason: Reason,
  services: LaunchServices,
): Promise<number> {
  return request.sandbox === 'none'
    ? runOnHost(call, request, reason, services)
    : runInContainer(call, request, reason, services);
}

async function runOnHost(
  call: Call,
  request: LaunchRequest,
  reason: Reason,
  services: LaunchServices,
): Promise<number> {
  const [command = '', ...args] = request.command;
  await record(call, request, reason, services.sessions);
  const { workingDirectory: cwd, interactive: terminal, env } = call.context;
  const ended = await runChild({ command, args, cwd, terminal, env: environmentWithoutProxy(env) }, services.signals);
  if (ended.kind === 'not_started') {
    const why = ended.code === 'ENOENT' ? 'not found' : ended.message;
    call.context.stderr.write(`svc launch: ${JSON.stringify(command)}: ${why}\n`);
  }
  return exitStatusOf(ended);
}

async function runInContainer(
  call: Call,
  request: LaunchRequest,
  reason: Reason,
  services: LaunchServices,
): Promise<number> {
  const runtime = await runtimeOf(call, request);
  const image = request.image ?? '';
  valueOrLaunchError(await runtime.inspectImage(image));
  const mounts = launchMounts(call, request, runtime.endpoint);
  const env = await launchVariables(call, request.envNames);
  await record(call, request, reason, services.sessions);
  const { name, command, workdir, detach: detached } = request;
  const launch = { image, name, command, mounts, workdir, env, detached, tty: wantsTty(call, request) };
  const end = await launchUnproxied({ ...callPorts(call, services.signals), runtime }, launch);
  if (end.exitCode !== null) return end.exitCode;
  call.print.data({ container_id: end.containerId, name }, () => `${end.containerId}\n`);
  return 0;
}

async function runtimeOf(call: Call, request: LaunchRequest): Promise<ContainerRuntime> {
  const { env } = call.context;
  return valueOrLaunchError(await openEngine(env, request.engine));
}

async function record(call: Call, request: LaunchRequest, reason: Reason, sessions: SandboxSessions): Promise<void> {
  await sessions.recordDisabled(reason, request.sandbox, request.image);
  if (reason === 'unsupported_sandbox_mode') {
    call.print.warn(
      `--sandbox=${request.sandbox} is not supported: the command runs without the proxy, and no credential is added`,
    );
  }
}
