import { attachContainer } from '../engine/attached_container.ts';
import type { BindMount, ContainerRuntime, ContainerSpec } from '../engine/container_runtime.ts';
import { holdBackSignals } from './interruption.ts';
import { valueOrLaunchError } from './launch_error.ts';
import type { LaunchEnd } from './launch_container.ts';
import type { LaunchPorts } from './launch_ports.ts';
import { removeContainer } from '../engine/remove_container.ts';
import { UndoStack } from './undo_stack.ts';

/** Launches an image unchanged: its own user, entrypoint and network, no session, no proxy. */
interface UnproxiedLaunch {
  readonly image: string;
  readonly name: string | null;
  readonly command: readonly string[];
  readonly mounts: readonly BindMount[];
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly detached: boolean;
  readonly tty: boolean;
}

/** Runs it to its end, or starts it detached. */
export async function launchUnproxied(
  ports: Pick<LaunchPorts, 'signals' | 'warn' | 'pause'> & { readonly runtime: ContainerRuntime },
  launch: UnproxiedLaunch,
): Promise<Omit<LaunchEnd, 'sessionId'>> {
  const { runtime, signals, warn, pause } = ports;
  const undo = new UndoStack((error) => warn(`not taken down in order: ${String(error)}`));
  const interruption = holdBackSignals(signals);
  try {
    const containerId = valueOrLaunchError(await runtime.create(containerSpec(launch)));
    undo.add(async () => valueOrLaunchError(await removeContainer(runtime, containerId, pause)));
    interruption.check();
    if (launch.detached) {
      valueOrLaunchError(await runtime.startDetached(containerId));
      undo.keep();
      return { containerId, exitCode: null };
    }
    const container = attachContainer(ports, containerId, launch.tty);
    interruption.stop();
    return { containerId, exitCode: await container.exitCode };
  } finally {
    await undo.undo();
    interruption.stop();
  }
}

function containerSpec(launch: UnproxiedLaunch): ContainerSpec {
  const { image, name, command, mounts, workdir, env, tty, detached } = launch;
  return {
    image,
    name,
    command,
    mounts,
    workdir,
    env,
    tty,
    labels: {},
    user: null,
    entrypoint: null,
    stdin: !detached,
    network: null,
    hardening: null,
    enginesProxies: 'kept',
  };
}
