import { unclaimedEndpoints } from '../../shared/net/sdk_endpoints.ts';
import { AGENT_HARDENING } from '../engine/agent_hardening.ts';
import { containerEnvironment } from './container_environment.ts';
import { containerLabels } from '../engine/container_labels.ts';
import type { BindMount, ContainerSpec, VolumeMount } from '../engine/container_runtime.ts';
import { holdBackSignals, type Interruption } from './interruption.ts';
import { LaunchError, valueOrLaunchError } from './launch_error.ts';
import type { LaunchPorts, NewSandboxSession, SandboxSession } from './launch_ports.ts';
import { removeContainer } from '../engine/remove_container.ts';
import { attachContainer } from '../engine/attached_container.ts';
import { mayHoldSentinel } from './session_environment.ts';
import { UndoStack } from './undo_stack.ts';
import { openListenerWhenStarted } from './open_listener.ts';

/** A checked request to launch a container whose HTTPS goes through the proxy. */
export interface ContainerLaunch {
  readonly home: string;
  readonly session: NewSandboxSession;
  /** The user that the command runs as, which the image names. */
  readonly agentUser: string;
  /** Full path of the helper that the container starts with: a mount or a variable could redirect a bare name. */
  readonly entry: string;
  readonly command: readonly string[];
  readonly mounts: readonly BindMount[];
  readonly volumes?: readonly VolumeMount[];
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Changes the container's environment, in which every placeholder of the session is. */
  readonly environment?: (
    environment: Readonly<Record<string, string>>,
    session: Pick<SandboxSession, 'sentinels'>,
  ) => Record<string, string>;
  readonly relay: boolean;
  /** See {@link ContainerSession}. */
  readonly exempt?: readonly string[];
  readonly tty: boolean;
}

/** `exitCode` is the command's; a detached launch has none. */
export interface LaunchEnd {
  readonly sessionId: string;
  readonly containerId: string;
  readonly exitCode: number | null;
}

/** The only file of a session that its container sees. */
const CA_PATH = '/etc/svc/proxy/ca.pem';

/**
 * Creates session, container and listener and runs the command; afterwards everything is removed, also on failure. If the
 * caller is killed, the sidecar removes the rest: it knows the session's owner and container.
 */
export async function launchContainer(ports: LaunchPorts, launch: ContainerLaunch): Promise<LaunchEnd> {
  const undo = new UndoStack((error) => ports.warn(`not taken down in order: ${messageOf(error)}`));
  const interruption = holdBackSignals(ports.signals);
  try {
    const { session, containerId } = await prepare(ports, launch, undo, interruption);
    const ends = { sessionId: session.sessionId, containerId };
    if (!launch.session.detached) {
      return { ...ends, exitCode: await runAttached(ports, { launch, session, containerId, interruption }) };
    }
    valueOrLaunchError(await ports.runtime.startDetached(containerId));
    await openListenerWhenStarted(
      ports,
      { sessionId: session.sessionId, containerId, relay: launch.relay },
      () => false,
    );
    interruption.check();
    undo.keep();
    return { ...ends, exitCode: null };
  } finally {
    await undo.undo();
    interruption.stop();
  }
}

async function prepare(
  ports: LaunchPorts,
  launch: ContainerLaunch,
  undo: UndoStack,
  interruption: Interruption,
): Promise<{ readonly session: SandboxSession; readonly containerId: string }> {
  const { runtime, sessions } = ports;
  const session = await sessions.create(launch.session);
  undo.add(() => sessions.end(session.sessionId));
  interruption.check();
  const given = { ...launch.env, ...(await fetchUnsealedValues(ports, launch, session.sessionId)) };
  warnOfPlaceholders(ports, session, given);
  warnOfMissingEndpoints(ports, session, given);
  const containerId = valueOrLaunchError(await runtime.create(containerSpec(launch, session, given)));
  undo.add(async () => valueOrLaunchError(await removeContainer(runtime, containerId, ports.pause)));
  await sessions.recordContainer(session.sessionId, containerId);
  interruption.check();
  return { session, containerId };
}

async function fetchUnsealedValues(
  { sessions }: LaunchPorts,
  launch: ContainerLaunch,
  sessionId: string,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const credential of launch.session.unsealed) {
    const value = await sessions.unseal(sessionId, credential);
    if (value.includes('\0')) {
      const message = `the credential ${credential.reference} holds a NUL character, which no environment variable can`;
      throw new LaunchError({ message, fixes: [] });
    }
    values[credential.env] = value;
  }
  return values;
}

function warnOfPlaceholders(
  ports: LaunchPorts,
  session: SandboxSession,
  given: Readonly<Record<string, string>>,
): void {
  for (const { env } of session.sentinels) {
    const name = JSON.stringify(env);
    if (!mayHoldSentinel(env))
      ports.warn(`the placeholder for ${name} was not handed out: choose another --sentinel-env`);
    else if (Object.hasOwn(given, env))
      ports.warn(`${name} holds a binding's placeholder, not the value that you gave`);
  }
}

const CLOUDS = { aws: 'AWS', google: 'Google', azure: 'Azure' } as const;

/** SDKs take http only on loopback, and a bridge's gateway serves all sessions (decision 0117): there they would find no credentials. */
function warnOfMissingEndpoints(
  ports: Pick<LaunchPorts, 'warn'>,
  { listener, sdkEndpoints = [] }: SandboxSession,
  given: Readonly<Record<string, string>>,
): void {
  const missing = listener === 'gateway' ? unclaimedEndpoints(sdkEndpoints, given) : [];
  if (missing.length === 0) return;
  const names = missing.map((sdk) => CLOUDS[sdk]).join(', ');
  ports.warn(
    `SDKs of ${names} find no credentials in this container: its proxy is not on its own loopback; launch with --egress=sealed`,
  );
}

function containerSpec(
  launch: ContainerLaunch,
  session: SandboxSession,
  given: Readonly<Record<string, string>>,
): ContainerSpec {
  const { imageId, name, egress, detached } = launch.session;
  const environment = containerEnvironment({ ...session, relay: launch.relay, exempt: launch.exempt ?? [] }, given);
  const env = launch.environment?.(environment, session) ?? environment;
  return {
    image: imageId,
    name: name ?? `svc-${session.sessionId.replace(/^ses_/, '')}`,
    labels: containerLabels(launch.home, session.sessionId),
    env: { ...env, SVC_AGENT_USER: launch.agentUser },
    mounts: [...launch.mounts, { source: session.caPemPath, target: CA_PATH, readOnly: true }],
    ...(launch.volumes !== undefined && { volumes: launch.volumes }),
    workdir: launch.workdir,
    // The start installs the CA, then becomes the agent's user for good.
    user: '0',
    entrypoint: launch.entry,
    command: ['--', ...launch.command],
    tty: launch.tty,
    stdin: !detached,
    network: egress === 'open' ? null : 'none',
    hardening: AGENT_HARDENING,
    enginesProxies: 'left_out',
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface AttachedRun {
  readonly launch: Pick<ContainerLaunch, 'relay' | 'tty'>;
  readonly session: Pick<SandboxSession, 'sessionId'>;
  readonly containerId: string;
  readonly interruption: Interruption;
}

/** Runs a created container with our streams until it ends; returns the exit code. */
async function runAttached(ports: LaunchPorts, run: AttachedRun): Promise<number> {
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
