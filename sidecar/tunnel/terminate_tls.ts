import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { TLSSocket } from 'node:tls';

import { errorCode } from '../../shared/model/error_code.ts';
import { Connection } from '../../machine/connection/connection.ts';

export interface TerminatedTls {
  readonly socket: TLSSocket;
  /** The same as a connection; to be called at once, and only for HTTP/1.1. */
  readonly connection: () => Connection;
  /** The server name that the client sent, if any. */
  readonly sni: string | null;
}

/** Why there is no {@link TerminatedTls}. */
export type FailedTls = 'certificate_refused' | 'failed';

/**
 * Terminates the client's TLS with the leaf of the tunnel's host, for any server name that the client sends, and with the
 * one given protocol. Otherwise says whether the client refused the certificate, mostly because it does not trust the
 * session's CA, or the handshake failed for another reason.
 */
export function terminateTls(
  socket: Socket,
  secureContext: SecureContext,
  protocol: string,
  timeoutSeconds: number,
): Promise<TerminatedTls | FailedTls> {
  if (socket.destroyed) return Promise.resolve('failed');
  const writtenBefore = socket.bytesWritten;
  const tls = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: [protocol],
    SNICallback: (_name, callback) => callback(null, secureContext),
  });
  return new Promise((resolve) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      tls.destroy();
    }, timeoutSeconds * 1000);
    const fail = (error?: unknown): void => {
      clearTimeout(timer);
      const hasCertificate = socket.bytesWritten - writtenBefore > MOST_BYTES_WITHOUT_CERTIFICATE;
      tls.destroy();
      socket.destroy();
      resolve(!isLate && isCertificateRefusal(error, hasCertificate) ? 'certificate_refused' : 'failed');
    };
    // Never removed: an unhandled error event of a socket ends the process.
    tls.on('error', fail);
    const leave = (): void => fail();
    tls.once('close', leave);
    tls.once('end', leave);
    tls.once('secure', () => {
      clearTimeout(timer);
      tls.off('close', leave);
      tls.off('end', leave);
      // Only a TLS server of Node says so itself, and an HTTP/2 session waits for it.
      Object.assign(tls, { secureConnecting: false });
      const { servername } = tls as TLSSocket & { servername?: string | false | null };
      resolve({
        socket: tls,
        connection: () => new Connection(tls, () => socket.bytesRead, createConnectedProbe(socket, [tls])),
        sni: typeof servername === 'string' ? servername : null,
      });
    });
  });
}

/** An alert or a request for another hello is shorter; a flight with a certificate is longer. */
const MOST_BYTES_WITHOUT_CERTIFICATE = 300;

/** The alerts by which a client refuses a certificate (RFC 8446 section 6.2), as the TLS library names them. */
const CERTIFICATE_ALERTS: ReadonlySet<string> = new Set([
  'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
  'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
  'ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN',
]);

/** Some clients say nothing, and only leave when they have seen the certificate. */
function isCertificateRefusal(error: unknown, hasCertificate: boolean): boolean {
  const code = errorCode(error);
  return CERTIFICATE_ALERTS.has(code) || (hasCertificate && (code === '' || code === 'ECONNRESET'));
}

/**
 * Asks the system whether a connection still has a peer. One that was reset has none, even if TLS reported a normal end.
 * Node asks once per view of a connection and caches the answer, so each call uses another view.
 */
function createConnectedProbe(socket: Socket, others: readonly Socket[]): () => boolean {
  // A Unix socket has no addresses. Its peer is of this machine, and closes in order.
  if (socket.localAddress === undefined && !socket.destroyed) return () => true;
  const views = [socket, ...others];
  return () => {
    const [view] = views.length > 1 ? views.splice(0, 1) : views;
    return view?.remoteAddress !== undefined;
  };
}
