import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { TLSSocket } from 'node:tls';

import { Connection } from '../../machine/connection/connection.ts';

export interface TerminatedTls {
  readonly socket: TLSSocket;
  /** The same as a connection; to be called at once, and only for HTTP/1.1. */
  readonly connection: () => Connection;
  /** The server name that the client sent, if any. */
  readonly sni: string | null;
}

/**
 * Terminates the client's TLS with the leaf of the tunnel's host, for any server name that the client sends, and with the
 * one given protocol. Null if the handshake fails, mostly because the client does not trust the session's CA.
 */
export function terminateTls(
  socket: Socket,
  secureContext: SecureContext,
  protocol: string,
  timeoutSeconds: number,
): Promise<TerminatedTls | null> {
  if (socket.destroyed) return Promise.resolve(null);
  const tls = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: [protocol],
    SNICallback: (_name, callback) => callback(null, secureContext),
  });
  return new Promise((resolve) => {
    const timer = setTimeout(() => tls.destroy(), timeoutSeconds * 1000);
    const fail = (): void => {
      clearTimeout(timer);
      tls.destroy();
      socket.destroy();
      resolve(null);
    };
    // Never removed: an unhandled error event of a socket ends the process.
    tls.on('error', fail);
    tls.once('close', fail);
    tls.once('end', fail);
    tls.once('secure', () => {
      clearTimeout(timer);
      tls.off('close', fail);
      tls.off('end', fail);
      // Only a TLS server of Node says so itself, and an HTTP/2 session waits for it.
      Object.assign(tls, { secureConnecting: false });
      const { servername } = tls as TLSSocket & { servername?: string | false | null };
      resolve({
        socket: tls,
        connection: () => new Connection(tls, () => socket.bytesRead, createConnectedProbe([socket, tls])),
        sni: typeof servername === 'string' ? servername : null,
      });
    });
  });
}

/**
 * Asks the system whether a connection still has a peer. One that was reset has none, even if TLS reported a normal end.
 * Node asks once per view of a connection and caches the answer, so each call uses another view.
 */
function createConnectedProbe(views: Socket[]): () => boolean {
  return () => {
    const [view] = views.length > 1 ? views.splice(0, 1) : views;
    return view?.remoteAddress !== undefined;
  };
}
