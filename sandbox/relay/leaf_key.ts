import { X509Certificate } from 'node:crypto';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { sha256 } from '../../machine/sha256.ts';

/** A name that never exists (RFC 6761): only the handshake happens, and nothing is sent to any host. */
const PROBE_HOST = 'relay.svc.invalid';
const PROBE_TIMEOUT_MS = 10_000;

/**
 * The base64 SHA-256 of the public key of all certificates of the session (docs/decisions/0009), read from a handshake
 * through the relay and checked against the session's CA. Rejects if the relay or the proxy does not answer.
 */
export async function sessionLeafKeyHash(relayPort: number, caPem: string): Promise<string> {
  const socket = connectTcp({ host: '127.0.0.1', port: relayPort });
  const timer = setTimeout(() => socket.destroy(new Error('no answer')), PROBE_TIMEOUT_MS);
  try {
    await openTunnel(socket);
    const tls = connectTls({ socket, servername: PROBE_HOST, ca: caPem });
    await waitForEvent(tls, 'secureConnect');
    const hash = publicKeyHash(tls);
    // Ends in order: to the proxy, a dropped connection would look like a client that refuses the certificate.
    tls.end();
    await waitForEvent(tls.resume(), 'end');
    return hash;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function openTunnel(socket: Socket): Promise<void> {
  socket.write(`CONNECT ${PROBE_HOST}:443 HTTP/1.1\r\nHost: ${PROBE_HOST}:443\r\n\r\n`);
  await waitForEvent(socket, 'readable');
  const reply = String(socket.read());
  if (!/^HTTP\/1\.1 200 [^\n]*\r\n(.*\r\n)*\r\n$/.test(reply)) {
    throw new Error(`the proxy answered ${reply.split('\r\n')[0]}`);
  }
}

function publicKeyHash(tls: TLSSocket): string {
  const leaf = new X509Certificate(tls.getPeerCertificate().raw);
  const key = leaf.publicKey.export({ type: 'spki', format: 'der' });
  return sha256(key).toString('base64');
}

function waitForEvent(socket: Socket, event: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed')));
    socket.once(event, resolve);
  });
}
