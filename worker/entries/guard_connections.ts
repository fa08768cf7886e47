import { readFile } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionLimits } from '../../shared/model/limits.ts';
import { type Admission, ConnectionGate, dropTeller, peerAt } from '../../shared/net/connection_gate.ts';
import { usersByTables } from '../../shared/net/tcp_table.ts';
import type { Log } from '../routes/http/app_env.ts';

/** How long a whole request may take to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;
/** How often Node looks for expired connections. */
const CHECK_MS = 1_000;

/** Node's own options for a server that sets a deadline for the first head. */
export function serverDeadlines({ firstHeadSeconds }: Pick<ConnectionLimits, 'firstHeadSeconds'>) {
  const headersTimeout = firstHeadSeconds * 1000;
  const requestTimeout = Math.max(REQUEST_TIMEOUT_MS, headersTimeout);
  return { headersTimeout, requestTimeout, connectionsCheckingInterval: CHECK_MS };
}

interface GuardOptions {
  readonly limits: Pick<ConnectionLimits, 'maxWaitingConnections' | 'maxWaitingPerPeer'>;
  /** The limit of all connections; null if the system gives none. */
  readonly maxOpen: number | null;
  readonly log: Log;
}

/**
 * If there are too many connections, drops the oldest that wait for a request or for the rest of one. Connections whose
 * request is being answered stay.
 */
export function guardConnections(server: Server, { limits, maxOpen, log }: GuardOptions): void {
  const gate = new ConnectionGate({
    limits: { maxWaiting: limits.maxWaitingConnections, maxWaitingPerPeer: limits.maxWaitingPerPeer, maxOpen },
    usersOf: usersByTables((path) => readFile(path, 'latin1')),
    onDropped: dropTeller(Date.now, (reason, dropped) =>
      log({ level: 'error', message: 'too many connections at once: some were dropped', reason, dropped }),
    ),
  });
  const served = new WeakMap<Socket, Served>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket;
    const ends = { remoteAddress, remotePort, localAddress, localPort };
    const admission = gate.admit({ peer: peerAt(remoteAddress), ends, drop: () => socket.resetAndDestroy() });
    if (admission === null) return;
    served.set(socket, { admission, underWay: 0 });
    socket.once('close', () => admission.markClosed());
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = served.get(request.socket);
    if (connection !== undefined) follow(connection, request, response);
  });
}

interface Served {
  readonly admission: Admission;
  /** Unanswered requests: a client may send several at once. */
  underWay: number;
}

/** A connection is serving from the end of its request to the end of the reply. */
function follow(connection: Served, request: IncomingMessage, response: ServerResponse): void {
  const { admission } = connection;
  const onArrived = (): void => admission.markServed();
  connection.underWay += 1;
  if (hasBody(request)) request.once('end', onArrived);
  else onArrived();
  response.once('close', () => {
    request.off('end', onArrived);
    connection.underWay -= 1;
    if (connection.underWay === 0) admission.markWaiting();
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
