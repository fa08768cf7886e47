import { isRunning } from '../session/process_identity.ts';
import type { Session } from '../session/session.ts';

/** A session as the local API tells of it: no token, no path. */
export function sessionRecord(session: Session): object {
  const { id, name, createdAt, expiresAt, openTunnels, owner, lock } = session;
  return {
    session_id: id,
    name,
    /** `ended`: nothing is open any more, but its container is still there. */
    state: session.ended ? 'ended' : 'live',
    created_at: new Date(createdAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    open_tunnels: openTunnels,
    owner_alive: owner === null ? null : isRunning(owner),
    plan: lock === null ? null : { name: lock.name },
    sandbox: sandboxRecord(session),
  };
}

function sandboxRecord({ sandbox, containerId, unsealed }: Session): object | null {
  if (sandbox === null) return null;
  const { mode, image, imageId, runtime, detached, egress } = sandbox;
  return { mode, image, image_id: imageId, container_id: containerId, runtime, detached, egress, unsealed };
}
