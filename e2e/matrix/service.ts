import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Certificate } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';
import { answerMessages, serveWebSocket } from '../support/websocket.ts';

/** A request to a service, with its body read. */
interface ServiceRequest {
  /** Of HTTP: `1.1` or `2.0`. */
  readonly version: string;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly body: Buffer;
}

/**
 * An HTTPS service that refuses requests without its credential, and its received requests. It speaks one version of HTTP, and
 * says on a WebSocket what it hears.
 */
export interface Service {
  readonly port: number;
  readonly requests: ServiceRequest[];
  /** The Authorization header it accepts. */
  readonly wanted: string;
  close(): Promise<void>;
}

export type ServiceHandler = (request: ServiceRequest, response: Response) => void;

/** What a handler needs of a response, in either version of HTTP. */
export interface Response {
  writeHead(status: number, headers: OutgoingHttpHeaders): Response;
  end(body: string | Buffer): unknown;
}

export async function startService(
  certificate: Certificate,
  wanted: string,
  handle: ServiceHandler,
  version: 'HTTP/1.1' | 'HTTP/2' = 'HTTP/1.1',
): Promise<Service> {
  const requests: ServiceRequest[] = [];
  const record = (incoming: IncomingMessage | Http2ServerRequest, body: Buffer): ServiceRequest => {
    const url = new URL(incoming.url ?? '/', 'https://service.invalid');
    const request = {
      version: incoming.httpVersion,
      method: incoming.method ?? '',
      path: decodeURIComponent(url.pathname),
      query: url.searchParams,
      authorization: incoming.headers.authorization,
      body,
    };
    requests.push(request);
    return request;
  };
  const answer = (incoming: IncomingMessage | Http2ServerRequest, response: Response): void => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const request = record(incoming, Buffer.concat(chunks));
      if (request.authorization === wanted) handle(request, response);
      else sendJson(response, 401, { message: 'Bad credentials' });
    });
  };
  const sessions = new Set<ServerHttp2Session>();
  const settings = { enableConnectProtocol: true };
  const server =
    version === 'HTTP/2' ? createSecureServer({ ...certificate, settings }, answer) : createServer(certificate, answer);
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (record(incoming, head).authorization === wanted) serveWebSocket(incoming, socket, head, sayAgain);
    else socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
  });
  // What opens a WebSocket over HTTP/2 (RFC 8441).
  server.on('connect', (incoming: Http2ServerRequest, { stream }: Http2ServerResponse) => {
    if (record(incoming, NOTHING).authorization !== wanted) {
      stream.respond({ ':status': 401 }, { endStream: true });
      return;
    }
    stream.respond({ ':status': 200 });
    answerMessages(stream, NOTHING, sayAgain);
  });
  server.on('session', (session: ServerHttp2Session) => sessions.add(session));
  const port = await listen(server);
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    if ('closeAllConnections' in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, requests, wanted, close };
}

const NOTHING = Buffer.alloc(0);
const sayAgain = (message: string): Promise<string[]> => Promise.resolve([message]);

export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export function sendText(response: Response, type: string, body: string | Buffer): void {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
