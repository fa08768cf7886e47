import type { ChildProcess } from 'node:child_process';
import type { LaunchPorts } from '../launch/launch_ports.ts';
import type { ContainerRuntime } from './container_runtime.ts';
import { exitStatusOf, superviseChild } from './run_child.ts';

/** A container attached to our streams. */
interface AttachedContainer {
  /** Resolves with the exit code. */
  readonly exitCode: Promise<number>;
  readonly hasEnded: () => boolean;
  /** Detaches. */
  readonly abandon: () => void;
}

/** Signals that a terminal sends to the engine's program directly. */
const FOR_THE_CLIENT = new Set<NodeJS.Signals>(['SIGWINCH', 'SIGCONT']);
const NOT_STARTED = 125;
const SAY_WHY_NOT = new Set([126, 127]);

type AttachedPorts = Pick<LaunchPorts, 'signals' | 'warn'> & {
  readonly runtime: Pick<ContainerRuntime, 'start' | 'signal' | 'inspect'>;
};

/** Starts a created container with our streams. Until it ends, our signals are forwarded to its first process. */
export function attachContainer(
  { runtime, signals, warn }: AttachedPorts,
  containerId: string,
  tty: boolean,
): AttachedContainer {
  const child = runtime.start(containerId, { stdin: true, tty });
  let ended = false;
  const deliver = async (name: NodeJS.Signals): Promise<void> => {
    if (FOR_THE_CLIENT.has(name)) return;
    const sent = await runtime.signal(containerId, name);
    if (sent.ok || ended || (await hasStopped(runtime, containerId)) || ended) return;
    warn(`${name} did not reach the container: ${sent.error.message}`);
  };
  const end = superviseChild(child, signals, deliver).finally(() => (ended = true));
  return {
    exitCode: end.then((how) => exitCodeOf(runtime, containerId, exitStatusOf(how))),
    hasEnded: () => ended,
    abandon: () => stop(child),
  };
}

/** True for a container whose program has ended: what a signal would have ended. One that has not started misses the signal. */
async function hasStopped(runtime: Pick<ContainerRuntime, 'inspect'>, containerId: string): Promise<boolean> {
  const state = await runtime.inspect(containerId);
  return state.ok && (state.value === null || (state.value.wasStarted && !state.value.running));
}

function stop(child: ChildProcess): void {
  child.kill('SIGKILL');
}

/**
 * The exit code of a launch: the container's, or 125 to 127 if the engine could not start it. In that case the engine's program
 * has printed why on stderr.
 */
async function exitCodeOf(
  runtime: Pick<ContainerRuntime, 'inspect'>,
  containerId: string,
  programsExitCode: number,
): Promise<number> {
  if (programsExitCode === 0) return 0;
  const state = await runtime.inspect(containerId);
  if (!state.ok || state.value === null || state.value.wasStarted) return programsExitCode;
  return SAY_WHY_NOT.has(state.value.exitCode) ? state.value.exitCode : NOT_STARTED;
}
