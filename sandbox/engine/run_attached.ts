import { attachContainer } from './attached_container.ts';
import type { Interruption } from '../launch/interruption.ts';
import type { ContainerLaunch } from '../launch/launch_container.ts';
import type { LaunchPorts, SandboxSession } from '../launch/launch_ports.ts';
import { openListenerWhenStarted } from '../launch/open_listener.ts';

export interface AttachedRun {
  readonly launch: Pick<ContainerLaunch, 'relay' | 'tty'>;
  readonly session: Pick<SandboxSession, 'sessionId'>;
  readonly containerId: string;
  readonly interruption: Interruption;
}

/** Runs a created container with our streams until it ends; returns the exit code. */
export async function runAttached(ports: LaunchPorts, run: AttachedRun): Promise<number> {
  const { launch, session, containerId, interruption } = run;
  interruption.check();
  const container = attachContainer(ports, containerId, launch.tty);
  // From here on, signals are forwarded to the command, and we end when it ends.
  interruption.stop();
  try {
    const target = { sessionId: session.sessionId, containerId, relay: launch.relay };
    await openListenerWhenStarted(ports, target, container.hasEnded);
  } catch (error) {
    container.abandon();
    await container.exitCode;
    throw error;
  }
  return container.exitCode;
}
