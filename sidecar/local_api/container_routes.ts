import { err, ok, type Result } from '../../shared/model/result.ts';
import { RELAY_PORT } from '../reach/session_listeners.ts';
import { writeContainerRecord } from '../session/container_record.ts';
import type { Sandbox } from '../session/sandbox.ts';
import type { Session } from '../session/session.ts';
import type { ListenerInput } from './inputs.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError, noSessionError } from './local_error.ts';

/** Records the container that a session's engine has created, so that a later start finds it after a crash. */
export async function noteContainer(
  { sessions }: LocalApiOptions,
  sessionId: string,
  containerId: string,
): Promise<Result<void, LocalError>> {
  const found = findSandboxedSession(sessions.get(sessionId), sessionId);
  if (!found.ok) return found;
  const { session, sandbox } = found.value;
  if (session.containerId !== null && session.containerId !== containerId) {
    return err(localError('conflict', 'The session already has another container: create one session for each.'));
  }
  session.containerId = containerId;
  await writeContainerRecord(session.directory, { sessionId, containerId, runtime: sandbox.runtime });
  return ok(undefined);
}

/** Opens the proxy inside the started container. From then on a detached container does not need its launcher. */
export async function openListener(
  { sessions, listeners }: LocalApiOptions,
  sessionId: string,
  { pid, relay }: ListenerInput,
): Promise<Result<object, LocalError>> {
  const found = findSandboxedSession(sessions.get(sessionId), sessionId);
  if (!found.ok) return found;
  const { session, sandbox } = found.value;
  const problem = findObstacle(session, relay);
  if (problem !== null) return err(problem);
  const opened = await listeners.open(session, pid, relay);
  if (!opened.ok) return err(localError(opened.error.reason, opened.error.message));
  if (session.ended) return err(noSessionError(sessionId));
  if (sandbox.detached) session.owner = null;
  const { listener, port } = opened.value;
  session.listener = { ...opened.value, relay };
  await sessions.save(session);
  return ok({ listener, listener_port: port, relay_port: relay ? RELAY_PORT : null });
}

function findObstacle({ containerId, container, listener, lock }: Session, relay: boolean): LocalError | null {
  if (containerId === null) return localError('conflict', 'The session has no container yet: register it first.');
  if (container !== null || listener !== null) return localError('conflict', "The session's listener is already open.");
  if (!relay || lock === null) return null;
  const message = "relay: a plan's session has no token of its own, so a relay has nothing to authenticate with.";
  return localError('session_of_plan', message);
}

function findSandboxedSession(
  session: Session | null,
  sessionId: string,
): Result<{ readonly session: Session; readonly sandbox: Sandbox }, LocalError> {
  if (session === null) return err(noSessionError(sessionId));
  if (session.sandbox !== null) return ok({ session, sandbox: session.sandbox });
  return err(localError('conflict', 'The session was created without a sandbox, so it has no container.'));
}
