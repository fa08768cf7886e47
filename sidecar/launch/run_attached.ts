import type { ContainerLaunch } from './launch_container.ts';
import type { Interruption } from './interruption.ts';
import type { LaunchPorts, SandboxSession } from './launch_ports.ts';
import { openListenerWhenStarted } from './open_listener.ts';
import { exitStatusOf, superviseChild } from './run_child.ts';
import { exitCodeOf } from './container_exit.ts';

export interface AttachedRun {
  readonly launch: Pick<ContainerLaunch, 'relay' | 'terminal'>;
  readonly session: Pick<SandboxSession, 'sessionId'>;
  readonly containerId: string;
  readonly interruption: Interruption;
}

/** Runs a created container with our streams until it ends. The value is the exit code. */
export async function runAttached(ports: LaunchPorts, run: AttachedRun): Promise<number> {
  const { launch, session, containerId, interruption } = run;
  interruption.check();
  const child = ports.runtime.start(containerId, { stdin: true });
  let hasEnded = false;
  const ended = superviseChild(child, ports.signals, launch.terminal).finally(() => (hasEnded = true));
  // From here on signals go to the command, whose end is ours.
  interruption.stop();
  try {
    const target = { sessionId: session.sessionId, containerId, relay: launch.relay };
    await openListenerWhenStarted(ports, target, () => hasEnded);
  } catch (error) {
    if (!hasEnded) child.kill('SIGKILL');
    await ended;
    throw error;
  }
  return exitCodeOf(ports.runtime, containerId, exitStatusOf(await ended));
}
