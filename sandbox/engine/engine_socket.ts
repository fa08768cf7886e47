import { connect } from 'node:net';

/** What is behind a Unix socket: an engine that answers, nobody, or one that this user may not speak to. */
export type SocketState = 'listening' | 'absent' | 'forbidden';

const FORBIDDEN = new Set(['EACCES', 'EPERM']);

/** Tries a Unix socket, without saying anything on it. */
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

/** The path of a `unix://` endpoint; null for every other kind of endpoint. */
export function unixSocketPath(endpoint: string): string | null {
  return /^unix:\/\/(\/.*)$/.exec(endpoint)?.[1] ?? null;
}
