import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** How long a request of the local API may take to arrive; its head has arrived when the listener hands it over. */
const REQUEST_TIMEOUT_MS = 30_000;

/** Emitted on a connection when its whole request has arrived. */
export const ARRIVED = 'svc:arrived';

/**
 * The HTTP server of a local API. It answers one request per connection and reads nothing after it, pipelined or in proxy
 * form: the listener decides which requests are for the proxy before any routing. Its connections come from the listener, so
 * Node's own timeouts, which start with listening, do not apply.
 */
export function createApiServer(answer: RequestListener, requestTimeoutMs = REQUEST_TIMEOUT_MS): Server {
  const arriving = new WeakMap<Duplex, NodeJS.Timeout>();
  const answered = new WeakSet<Duplex>();
  const server = createServer((request, response) => {
    const { socket } = request;
    if (answered.has(socket)) return;
    answered.add(socket);
    response.shouldKeepAlive = false;
    const markArrived = (): void => {
      clearTimeout(arriving.get(socket));
      socket.emit(ARRIVED);
    };
    if (hasBody(request)) request.once('end', markArrived);
    else markArrived();
    answer(request, response);
  });
  server.on('connection', (socket) => {
    const timer = setTimeout(() => socket.destroy(), requestTimeoutMs);
    arriving.set(socket, timer);
    socket.once('close', () => clearTimeout(timer));
  });
  return server;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
