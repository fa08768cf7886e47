import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { TLSSocket } from 'node:tls';

import { Connection } from '../../machine/connection/connection.ts';

export interface TerminatedTls {
  readonly connection: Connection;
  /** The server name the client asked for, when it sent one. */
  readonly sni: string | null;
}

/**
 * Terminates the client's TLS with the leaf of the tunnel's host, whatever server name the client sends; HTTP/1.1 only.
 * Null when the handshake fails: mostly a client that does not trust the session's CA.
 */
export function terminateTls(
  socket: Socket,
  secureContext: SecureContext,
  timeoutSeconds: number,
): Promise<TerminatedTls | null> {
  if (socket.destroyed) return Promise.resolve(null);
  const tls = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: ['http/1.1'],
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
    // Stays: an error of a socket that nobody listens to ends the process.
    tls.on('error', fail);
    tls.once('close', fail);
    tls.once('end', fail);
    tls.once('secure', () => {
      clearTimeout(timer);
      tls.off('close', fail);
      tls.off('end', fail);
      const { servername } = tls as TLSSocket & { servername?: string | false | null };
      resolve({
        connection: new Connection(tls, () => socket.bytesRead, connectedProbe([socket, tls])),
        sni: typeof servername === 'string' ? servername : null,
      });
    });
  });
}

/**
 * Asks the system whether a connection still has a peer: one that was reset has none, also where TLS took that for a plain
 * end. Node asks once for each of its views of a connection and keeps the answer, so each time another one is taken.
 */
function connectedProbe(views: Socket[]): () => boolean {
  return () => {
    const [view] = views.length > 1 ? views.splice(0, 1) : views;
    return view?.remoteAddress !== undefined;
  };
}
