/**
 * A program: the least that a proxy of HTTP/2 on Node's own does. It ends TLS, gives each request a bearer and a stream of one
 * session to the upstream, and copies. Settings: see `bare_streams.ts`.
 */
import { connect, createSecureServer } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { listen } from '../../e2e/support/tls_upstream.ts';
import { announce, readSettings } from '../load/programs.ts';
import { bareStreamsSettings } from './bare_streams.ts';

const { host, port, ca, key, cert, bearer } = await readSettings(bareStreamsSettings);
const upstream = connect(`https://${host}`, {
  createConnection: () => connectTls({ host: '127.0.0.1', port, servername: host, ca, ALPNProtocols: ['h2'] }),
});
const server = createSecureServer({ key, cert });
server.on('stream', (client, headers) => {
  const isWhole = client.endAfterHeaders;
  const request = upstream.request({ ...headers, authorization: `Bearer ${bearer}` }, { endStream: isWhole });
  if (!isWhole) client.pipe(request);
  request.on('response', (reply) => {
    if (client.closed || client.destroyed) {
      request.close();
      return;
    }
    client.respond(reply);
    request.pipe(client);
  });
  for (const stream of [client, request]) stream.on('error', () => undefined);
});
announce(await listen(server));
process.on('SIGTERM', () => process.exit(0));
