import { LaunchError, valueOrLaunchError } from './launch_error.ts';
import type { LaunchPorts } from './launch_ports.ts';

const POLL_MS = 10;
const START_TIMEOUT_MS = 30_000;

interface ListenerTarget {
  readonly sessionId: string;
  readonly containerId: string;
  readonly relay: boolean;
}

/**
 * Opens the proxy in the container's network as soon as the engine reports its first process. False if the container ended
 * before (`hasEnded`).
 */
export async function openListenerWhenStarted(
  { runtime, sessions, pause }: Pick<LaunchPorts, 'runtime' | 'sessions' | 'pause'>,
  target: ListenerTarget,
  hasEnded: () => boolean,
): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += POLL_MS) {
    const pid = valueOrLaunchError(await runtime.pidOf(target.containerId));
    if (pid !== null) {
      await sessions.openListener(target.sessionId, pid, target.relay);
      return true;
    }
    if (hasEnded()) return false;
    await pause(POLL_MS);
  }
  throw new LaunchError({
    message: 'the engine did not start the container in time',
    fixes: ['Look whether the engine is well: `docker info`.'],
  });
}
