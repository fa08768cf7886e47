/**
 * The upstream process of `bench/data_plane.ts`: on raw TLS sockets it answers `/<bytes>` with as many bytes, and reads the
 * body of a PUT, which must be the last request of its connection.
 */
import { createServer } from 'node:tls';

import { listen } from '../../machine/connection/listen.ts';
import { createAuthority, issueLeaf } from '../../sidecar/tls/certificates.ts';

const [host = ''] = process.argv.slice(2);
const authority = await createAuthority('bench upstream', Date.now());
const leaf = await issueLeaf(authority, `*.${host}`, Date.now());
const plain = await issueLeaf(authority, host, Date.now());
const PIECE = Buffer.alloc(64 * 1024, '{"id":1234,"name":"a value of some length","ok":true},');

const server = createServer({ key: leaf.keyPem, cert: leaf.certificatePem }, (socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
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
