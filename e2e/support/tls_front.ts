import { type IncomingMessage, request as httpRequest, type RequestListener, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { listen } from './tls_upstream.ts';
import type { Certificate } from './test_ca.ts';

/** The destination of requests for a host: a server on loopback, or an answer of the test. */
type FrontRoute = string | RequestListener;

/** A TLS proxy in front of plain HTTP servers: it replaces the forwarded headers of the client with its own. */
export interface TlsFront {
  readonly port: number;
  /** `host` is a name at port 443; only `localhost` stands for this server's own port. */
  route(host: string, to: FrontRoute): void;
  stop(): Promise<void>;
}

/** `onReply` is given the bytes of each reply of a server, which is then asked for none that are compressed. */
export async function startTlsFront(
  certificate: Certificate,
  onReply: ((bytes: Buffer) => void) | null = null,
): Promise<TlsFront> {
  const routes = new Map<string, FrontRoute>();
  const server = createServer(certificate, (request, response) => {
    const to = routes.get(request.headers.host?.toLowerCase() ?? '');
    if (to === undefined) response.writeHead(502).end('there is no such host');
    else if (typeof to === 'string') forward(to, request, { response, onReply });
    else to(request, response);
  });
  const port = await listen(server);
  return {
    port,
    route: (host, to) => routes.set(host === 'localhost' ? `localhost:${port}` : host, to),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Answer {
  readonly response: ServerResponse;
  readonly onReply: ((bytes: Buffer) => void) | null;
}

function forward(to: string, request: IncomingMessage, { response, onReply }: Answer): void {
  const { host = '' } = request.headers;
  const headers = {
    ...request.headers,
    ...(onReply !== null && { 'accept-encoding': 'identity' }),
    'x-forwarded-host': host,
    'x-forwarded-proto': 'https',
    'x-forwarded-for': request.socket.remoteAddress ?? '',
  };
  const passed = httpRequest(
    to + (request.url ?? '/'),
    { method: request.method ?? 'GET', headers, agent: false },
    (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.rawHeaders);
      reply.pipe(response);
      if (onReply !== null) void buffer(reply).then(onReply, () => undefined);
    },
  );
  passed.on('error', () => response.destroy());
  response.on('close', () => passed.destroy());
  request.pipe(passed);
}
