/**
 * The minimum for a proxy on Node's sockets, in place of `proxy_process.ts`: it terminates TLS on both sides, finds the end
 * of each head, and copies. The data plane's cost above it is that of deciding, injecting, scrubbing and recording.
 */
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import type { SecureContext } from 'node:tls';
import { TLSSocket, connect, createSecureContext } from 'node:tls';

import { findHeadEnd } from '../../shared/net/http/http1_head.ts';
import { listen } from '../../machine/connection/listen.ts';
import { createAuthority, issueLeaf } from '../../sidecar/tls/certificates.ts';

const [host = '', upstreamPort = '', upstreamCa = ''] = process.argv.slice(2);
const authority = await createAuthority('bench bare proxy', Date.now());
const upstreamContext = createSecureContext({ ca: Buffer.from(upstreamCa, 'base64').toString() });
const contexts = new Map<string, SecureContext>();
for (const name of [host, `bound.${host}`]) {
  const leaf = await issueLeaf(authority, name, Date.now());
  contexts.set(name, createSecureContext({ key: leaf.keyPem, cert: leaf.certificatePem }));
}

function copy(from: TLSSocket, to: TLSSocket): void {
  let heads = 0;
  from.on('data', (data: Buffer) => {
    if (findHeadEnd(data, 0) !== -1) heads += 1;
    if (to.write(data)) return;
    from.pause();
    to.once('drain', () => from.resume());
  });
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}

function tunnel(socket: Socket, name: string): void {
  socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  const secureContext = contexts.get(name);
  if (secureContext === undefined) return void socket.destroy();
  const client = new TLSSocket(socket, { isServer: true, secureContext });
  const port = Number(upstreamPort);
  const upstream = connect({ host: '127.0.0.1', port, servername: name, secureContext: upstreamContext });
  upstream.setNoDelay(true);
  copy(client, upstream);
  copy(upstream, client);
}

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy());
  socket.once('data', (data) => {
    tunnel(socket, /^CONNECT ([^:]+):443 /.exec(data.toString('latin1'))?.[1] ?? '');
  });
});

const port = await listen(server, 0, '127.0.0.1');
process.on('message', () => process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }));
process.on('disconnect', () => process.exit(0));
process.send?.({ port, sessionId: '', token: '', caPem: authority.certificatePem });
