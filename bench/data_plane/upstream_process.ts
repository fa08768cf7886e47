/**
 * The upstream process of `bench/data_plane.ts`: on raw TLS sockets it answers `/<bytes>` with as many bytes, and reads the
 * body of a PUT, which must be the last request of its connection. A client that offers HTTP/2 gets the same over HTTP/2.
 */
import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { performServerHandshake } from 'node:http2';
import { createServer } from 'node:tls';

import { listen } from '../../machine/connection/listen.ts';
import { createAuthority, issueLeaf } from '../../sidecar/tls/certificates.ts';

const [host = ''] = process.argv.slice(2);
const authority = await createAuthority('bench upstream', Date.now());
const leaf = await issueLeaf(authority, `*.${host}`, Date.now());
const plain = await issueLeaf(authority, host, Date.now());
const PIECE = Buffer.alloc(64 * 1024, '{"id":1234,"name":"a value of some length","ok":true},');

async function answerStream(stream: ServerHttp2Stream, path: string): Promise<void> {
  stream.resume();
  await once(stream, 'end');
  stream.respond({ ':status': 200, 'content-type': 'application/json' });
  for (let left = Number(path.slice(1)) || 0; left > 0; left -= PIECE.length) {
    if (!stream.write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE)) await once(stream, 'drain');
  }
  stream.end();
}

const certificate = { key: leaf.keyPem, cert: leaf.certificatePem };
const server = createServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  if (socket.alpnProtocol === 'h2') {
    const session = performServerHandshake(socket);
    session.on('error', () => undefined);
    session.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.on('error', () => undefined);
      answerStream(stream, headers[':path'] ?? '').catch(() => stream.destroy());
    });
    return;
  }
  let got = '';
  let uploadLeft = 0;
  const take = (bytes: number): void => {
    uploadLeft -= bytes;
    if (uploadLeft === 0) socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
  };
  socket.on('data', (data: Buffer) => {
    if (uploadLeft > 0) return take(data.length);
    const upload = /^PUT [^]*?\r\nContent-Length: (\d+)\r\n(?:[^]*?\r\n)??\r\n/i.exec(data.toString('latin1', 0, 2048));
    if (upload !== null) {
      uploadLeft = Number(upload[1]);
      return take(data.length - upload[0].length);
    }
    got += data.toString('latin1');
    for (let end = got.indexOf('\r\n\r\n'); end !== -1; end = got.indexOf('\r\n\r\n')) {
      const bytes = Number(/^GET \/(\d+)/.exec(got)?.[1] ?? 0);
      got = got.slice(end + 4);
      let left = bytes;
      const more = (): void => {
        while (left > 0) {
          const piece = left >= PIECE.length ? PIECE : PIECE.subarray(0, left);
          left -= piece.length;
          if (!socket.write(piece) && left > 0) return void socket.once('drain', more);
        }
      };
      socket.cork();
      socket.write(
        `HTTP/1.1 200 OK\r\nDate: Mon, 02 Jun 2025 10:11:12 GMT\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\nCache-Control: no-cache\r\nX-Request-Id: req_011CPmVGsBNGyW7QX2WzXyZq\r\nServer: bench\r\n\r\n`,
      );
      more();
      socket.uncork();
    }
  });
});
server.addContext(host, { key: plain.keyPem, cert: plain.certificatePem });
const port = await listen(server, 0, '127.0.0.1');
process.on('disconnect', () => process.exit(0));
process.send?.({ port, caPem: authority.certificatePem });
