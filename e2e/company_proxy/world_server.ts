// A host of the internet: `node world_server.ts CERTIFICATE KEY ADDRESS`, on port 443. It answers with the request that it
// got, and echoes what a WebSocket sends.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';

const [certificate = '', key = '', address = ''] = process.argv.slice(2);
const tls = { cert: readFileSync(certificate), key: readFileSync(key), allowHTTP1: true };
const server = createSecureServer(tls, (request, response) => {
  const { method, url, headers, httpVersion } = request;
  // svc masks a credential that a reply quotes, so the reply quotes its hash.
  const { authorization = '' } = headers;
  headers.authorization = createHash('sha256').update(authorization).digest('hex');
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ method, url, headers, httpVersion }));
});
server.on('upgrade', (_request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.pipe(socket);
});
server.listen(443, address);
