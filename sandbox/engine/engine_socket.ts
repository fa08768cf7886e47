import { connect } from 'node:net';

/** The state of a Unix socket: an engine listens, nothing listens, or this user has no access. */
export type SocketState = 'listening' | 'absent' | 'forbidden';

const FORBIDDEN = new Set(['EACCES', 'EPERM']);

/** Connects to a Unix socket without sending anything. */
export function tryUnixSocket(path: string): Promise<SocketState> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve('listening');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(FORBIDDEN.has(error.code ?? '') ? 'forbidden' : 'absent');
    });
  });
}

/** The path of a `unix://` endpoint; null for any other endpoint. */
export function unixSocketPath(endpoint: string): string | null {
  return /^unix:\/\/(\/.*)$/.exec(endpoint)?.[1] ?? null;
}
