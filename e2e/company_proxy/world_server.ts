// A host of the internet: `node world_server.ts CERTIFICATE KEY ADDRESS [NAME SOCKET]`, on port 443. It answers with the request
// that it got, and echoes what a WebSocket sends. Requests for the name go to the server at the socket.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

const [certificate = '', key = '', address = '', forwardedHost, socketPath = ''] = process.argv.slice(2);
const tls = { cert: readFileSync(certificate), key: readFileSync(key), allowHTTP1: true };
const server = createSecureServer(tls, (request, response) => {
  const { method, url, headers, httpVersion } = request;
  if (forwardedHost !== undefined && headers.host === forwardedHost) return forward(request, response);
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

/** As a TLS proxy in front of a control plane does. */
function forward(request: Http2ServerRequest, response: Http2ServerResponse): void {
  const { method, url, headers } = request;
  const forwarded = { 'x-forwarded-host': forwardedHost, 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' };
  const passed = httpRequest({ socketPath, method, path: url, headers: { ...headers, ...forwarded } }, (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(response);
  });
  passed.on('error', () => response.destroy());
  response.on('close', () => passed.destroy());
  request.pipe(passed);
}
