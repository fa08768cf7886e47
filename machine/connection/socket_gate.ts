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

export interface SocketGateOptions {
  readonly limits: Omit<ConnectionLimits, 'firstHeadSeconds'>;
  /** Most connections of all kinds; null where the system gives no number. */
  readonly maxOpen: number | null;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** The gate in front of a program's listeners. What it drops is counted, and told to the log once a minute at most. */
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

/** Asks the gate for a socket; null when it was dropped. `session`: whose own listener it came to. */
export function admitSocket(gate: ConnectionGate, socket: Socket, session: string | null): Admission | null {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
  // Node keeps its first answer: whoever asks later whether there still is a peer (terminate_tls.ts) has to be told anew.
  Object.assign(socket, { _peername: undefined });
  const admission = gate.admit({
    peer: session === null ? peerAt(remoteAddress) : { key: `session ${session}`, isShared: false },
    ends: { remoteAddress, remotePort, localAddress, localPort },
    // A reset leaves nothing of the connection in the kernel, where a goodbye would wait for the peer's.
    drop: () => socket.resetAndDestroy(),
  });
  if (admission !== null) socket.once('close', () => admission.markClosed());
  return admission;
}
