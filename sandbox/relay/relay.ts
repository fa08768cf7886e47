import { existsSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { TcpEnds } from '../../shared/net/tcp_table.ts';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import type { Admission } from '../../shared/net/connection_gate.ts';
import { listen } from '../../machine/connection/listen.ts';
import { openableConnections } from '../../shared/net/connection_gate.ts';
import { admitSocket, createSocketGate } from '../../machine/connection/socket_gate.ts';
import { peerUid } from './peer_uid.ts';
import { relayConnection, type RelayTarget } from './relay_connection.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** A loopback listener that adds one session's credentials for clients that cannot send proxy credentials. */
export interface Relay {
  readonly port: number;
  /** `http://127.0.0.1:<port>`, without credentials. */
  readonly url: string;
  /** Stops listening and drops every connection. */
  readonly close: () => Promise<void>;
}

interface RelayOptions {
  /** `http://<session_id>:<token>@<host>:<port>`. */
  readonly proxyUrl: string;
  /** The only user whose processes may use it; null on a system without user ids. */
  readonly uid: number | null;
  /** The user of the process at the other end of a connection; null if unknown. */
  readonly peerUid?: (ends: TcpEnds) => Promise<number | null>;
}

export type RelayFailureReason = 'relay_unsupported' | 'relay_unavailable';

const LOOPBACK = '127.0.0.1';
const PEER_TABLE = '/proc/net/tcp';

/**
 * Starts a relay on a free loopback port. Every user of the machine can connect, so only connections of processes of `uid` get
 * the session's credentials; if the system cannot tell the user, the relay is refused.
 */
export async function startRelay(options: RelayOptions): Promise<Result<Relay, Failure<RelayFailureReason>>> {
  const { uid, peerUid: uidOf = peerUid } = options;
  if (uid === null || (options.peerUid === undefined && !existsSync(PEER_TABLE))) {
    const message = 'the relay tells apart who connects to it by /proc/net/tcp, which only Linux has';
    return err({ reason: 'relay_unsupported', message });
  }
  const target = relayTarget(options.proxyUrl);
  const sockets = new Set<Socket>();
  const gate = createSocketGate({
    limits: DEFAULT_LIMITS,
    maxOpen: openableConnections(process.report),
    // Part of a command, which has neither metrics nor a log.
    metrics: { increment: () => undefined },
    log: { info: () => undefined, error: () => undefined },
    clock: { now: () => Date.now() },
  });
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    const admission = admitSocket(gate, socket, null);
    if (admission === null) return;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    void serve(socket, admission, { uid, uidOf, target });
  });
  const port = await listen(server, 0, LOOPBACK);
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return ok({ port, url: `http://${LOOPBACK}:${port}`, close });
}

interface Served {
  readonly uid: number;
  readonly uidOf: NonNullable<RelayOptions['peerUid']>;
  readonly target: RelayTarget;
}

/** A connection of another user counts as waiting until it ends, so it is dropped first. */
async function serve(socket: Socket, admission: Admission, { uid, uidOf, target }: Served): Promise<void> {
  try {
    const { remoteAddress, remotePort, localAddress, localPort } = socket;
    const known = remoteAddress !== undefined && remotePort !== undefined && localAddress !== undefined;
    const ends = known && localPort !== undefined ? { remoteAddress, remotePort, localAddress, localPort } : null;
    const peer = ends === null ? null : await uidOf(ends);
    const isTrusted = peer === uid;
    const onHead = isTrusted ? () => admission.markServed() : () => undefined;
    await relayConnection(socket, { isTrusted, onHead }, target);
  } catch {
    // A failure of one client ends only its connection.
    socket.destroy();
  }
}

function relayTarget(proxyUrl: string): RelayTarget {
  const url = new URL(proxyUrl);
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port === '' ? 80 : url.port),
    authorization,
  };
}
