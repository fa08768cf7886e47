import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { ConnectionLimits } from '../../shared/model/limits.ts';
import {
  type Admission,
  ConnectionGate,
  type DropReason,
  dropTeller,
  peerAt,
} from '../../shared/net/connection_gate.ts';
import { usersByTables } from '../../shared/net/tcp_table.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { Log, Metrics } from '../ports.ts';

const usersOf = usersByTables((path) => readFile(path, 'latin1'));

export const DROPPED_CONNECTIONS = 'svc_connections_dropped_total';

interface SocketGateOptions {
  readonly limits: Omit<ConnectionLimits, 'firstHeadSeconds'>;
  /** Maximum number of connections of all kinds; null if the system has no limit. */
  readonly maxOpen: number | null;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** Limits the connections of a program's listeners. Dropped connections are counted, and logged at most once a minute. */
export function createSocketGate({ limits, maxOpen, metrics, log, clock }: SocketGateOptions): ConnectionGate {
  const tell = dropTeller(
    () => clock.now(),
    (reason, dropped) => log.error('too many connections at once: some were dropped', { reason, dropped }),
  );
  const onDropped = (reason: DropReason): void => {
    metrics.increment(DROPPED_CONNECTIONS, { reason });
    tell(reason);
  };
  const { maxWaitingConnections: maxWaiting, maxWaitingPerPeer } = limits;
  return new ConnectionGate({ limits: { maxWaiting, maxWaitingPerPeer, maxOpen }, usersOf, onDropped });
}

/** Admits a socket; null if it was dropped. `session`: the session whose own listener accepted it. */
export function admitSocket(gate: ConnectionGate, socket: Socket, session: string | null): Admission | null {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
  // Node caches the first answer, so the peer must be looked up again later (terminate_tls.ts).
  Object.assign(socket, { _peername: undefined });
  const admission = gate.admit({
    peer: session === null ? peerAt(remoteAddress) : { key: `session ${session}`, isShared: false },
    ends: { remoteAddress, remotePort, localAddress, localPort },
    // A reset removes the connection from the kernel at once; an orderly close would wait for the peer. A Unix socket has none.
    drop: () => (localAddress === '' ? socket.destroy() : socket.resetAndDestroy()),
  });
  if (admission !== null) socket.once('close', () => admission.markClosed());
  return admission;
}
