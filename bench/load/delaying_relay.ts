import { createServer, connect, type Socket } from 'node:net';
import { listen } from '../../machine/connection/listen.ts';

export interface DelayingRelay {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * A relay to a port of this machine that stands for a network: each byte arrives `oneWayMs` late, in each direction, and the first
 * ones a whole round trip later still, as after the handshake of TCP over such a network.
 */
export async function startDelayingRelay(target: number, oneWayMs: number): Promise<DelayingRelay> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const upstream = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    copyLate(client, upstream, oneWayMs, performance.now() + 2 * oneWayMs);
    copyLate(upstream, client, oneWayMs, 0);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    }
  });
  return {
    port: await listen(server, 0, '127.0.0.1'),
    stop: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Timers of one delay fire in the order in which they were set, so the bytes keep theirs. */
function copyLate(from: Socket, to: Socket, delayMs: number, notBefore: number): void {
  const later = (act: () => void): void => {
    setTimeout(act, Math.max(notBefore - performance.now(), 0) + delayMs);
  };
  from.on('data', (bytes) => later(() => to.write(bytes)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
  from.on('close', () => later(() => to.destroy()));
}
