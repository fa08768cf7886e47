import type { Server as HttpServer } from 'node:http';
import type { Server } from 'node:net';
import { createServer } from 'node:net';

import { refusal } from '../../shared/model/refusal.ts';
import type { Admission } from '../../shared/net/connection_gate.ts';
import { parseRequestHead } from '../../shared/net/http/http1_head.ts';
import type { SocketConnection } from '../../machine/connection/connection.ts';
import { Connection, ConnectionLost } from '../../machine/connection/connection.ts';
import { readRequestHead } from '../../machine/connection/read_head.ts';
import { admitSocket } from '../../machine/connection/socket_gate.ts';
import { ARRIVED } from '../local_api/api_server.ts';
import { isProxyShaped } from './connect_target.ts';
import { NOT_HTTP } from './serve.ts';
import type { TunnelPorts } from './tunnel_ports.ts';
import { type FirstRequest, refuseUnread, tunnel } from './tunnel.ts';

/**
 * The sidecar's one port: proxy-shaped requests go to the tunnel before any routing, everything else goes to the local API
 * (specification section 4, Transparent proxy entrypoint). `session` is set if the listener belongs to one session.
 */
export function createListener(ports: TunnelPorts, localApi: HttpServer, session: string | null = null): Server {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const admission = admitSocket(ports.gate, socket, session);
    if (admission === null) return;
    accept(new Connection(socket), admission, ports, localApi).catch((error: unknown) => {
      socket.destroy();
      if (error instanceof ConnectionLost) return;
      ports.metrics.increment('svc_proxy_bugs_total');
      ports.log.error('a tunnel failed and was closed', { error: describe(error) });
    });
  });
  // A connection that cannot be accepted is dropped; the listener and all other tunnels continue.
  server.on('error', (error) => {
    if (server.listening) ports.log.error('a connection could not be accepted', { error: describe(error) });
  });
  return server;
}

/** Logs only where a bug is: error messages may quote a request. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return [error.name, ...frames.slice(0, 6).map((line) => line.trim())].join(' | ');
}

async function accept(
  client: SocketConnection,
  admission: Admission,
  ports: TunnelPorts,
  localApi: HttpServer,
): Promise<void> {
  for (let again = true; again;) {
    const first = await readFirstHead(client, ports);
    if (first === null) return;
    if (!isProxyShaped(first.head)) return handOver(client, first.raw, admission, localApi);
    again = await tunnel(client, first, admission, ports);
    if (client.needsDrain) await client.waitForDrain();
  }
}

async function readFirstHead(client: Connection, ports: TunnelPorts): Promise<FirstRequest | null> {
  const { limits } = ports.exchange;
  const timer = setTimeout(() => client.destroy(), limits.firstHeadSeconds * 1000);
  const mostBytes = Math.min(limits.maxFirstHeadBytes, limits.maxHeadBytes);
  const read = await readRequestHead(client, mostBytes).finally(() => clearTimeout(timer));
  if (read.kind === 'head') {
    const head = parseRequestHead(read.bytes.toString('latin1'), limits);
    if (head.ok) return { head: head.value, raw: read.bytes };
    await refuseUnread(client, refusal('invalid_request', head.error.message), ports);
  } else if (read.kind === 'too_large') {
    await refuseUnread(client, refusal('head_too_large', 'the request line and headers are too large'), ports);
  } else if (read.kind === 'not_http') {
    await refuseUnread(client, NOT_HTTP, ports);
  } else {
    client.destroy();
  }
  return null;
}

/** Gives the connection to the local API's server, with the request head that was already read, and waits until the whole request has arrived. */
function handOver(client: SocketConnection, raw: Buffer, admission: Admission, localApi: HttpServer): void {
  client.putBack(raw);
  const socket = client.release();
  socket.once(ARRIVED, () => admission.markServed());
  localApi.emit('connection', socket);
  socket.resume();
}
