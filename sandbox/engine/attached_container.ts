import type { ChildProcess } from 'node:child_process';
import { exitCodeOf } from './container_exit.ts';
import type { LaunchPorts } from '../launch/launch_ports.ts';
import { exitStatusOf, superviseChild } from './run_child.ts';

/** A container that runs with our streams. */
export interface AttachedContainer {
  /** The exit code, once it has ended. */
  readonly exitCode: Promise<number>;
  readonly hasEnded: () => boolean;
  /** Lets go of it. */
  readonly abandon: () => void;
}

/** What a terminal tells the engine's program itself. */
const FOR_THE_CLIENT = new Set<NodeJS.Signals>(['SIGWINCH', 'SIGCONT']);

/** Starts a created container with our streams. Signals that we get go to its first process until it has ended. */
export function attachContainer(
  { runtime, signals, warn }: Pick<LaunchPorts, 'runtime' | 'signals' | 'warn'>,
  containerId: string,
  tty: boolean,
): AttachedContainer {
  const child = runtime.start(containerId, { stdin: true, tty });
  let ended = false;
  const deliver = async (name: NodeJS.Signals): Promise<void> => {
    if (FOR_THE_CLIENT.has(name)) return;
    const sent = await runtime.signal(containerId, name);
    if (!sent.ok && !ended) warn(`${name} did not reach the container: ${sent.error.message}`);
  };
  const end = superviseChild(child, signals, deliver).finally(() => (ended = true));
  return {
    exitCode: end.then((how) => exitCodeOf(runtime, containerId, exitStatusOf(how))),
    hasEnded: () => ended,
    abandon: () => stop(child),
  };
}

function stop(child: ChildProcess): void {
  child.kill('SIGKILL');
}
