import { type Refusal, refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { LiveSession } from '../ports.ts';

/**
 * Counts a connection as a tunnel of its session, which can end it, until the returned function is called. `connections`: its
 * client, and later what else ends with the session. Refuses with `too_many_tunnels`.
 */
export function enterTunnel(session: LiveSession, connections: readonly Connection[]): Result<() => void, Refusal> {
  const over = Promise.withResolvers<void>();
  const close = session.openTunnel(() => {
    for (const connection of connections) connection.destroy();
    return over.promise;
  });
  if (close === null) return err(refusal('too_many_tunnels', 'this session has reached its limit of open tunnels'));
  return ok(() => {
    close();
    over.resolve();
  });
}
