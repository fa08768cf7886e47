import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerRequest, ServerHttp2Session } from 'node:http2';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import type { Certificate } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';

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

/** An HTTPS service that refuses requests without its credential, and its received requests. It speaks one version of HTTP. */
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
  const answer = (incoming: IncomingMessage | Http2ServerRequest, response: Response): void => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '/', 'https://service.invalid');
      const { authorization } = incoming.headers;
      const request = {
        version: incoming.httpVersion,
        method: incoming.method ?? '',
        path: decodeURIComponent(url.pathname),
        query: url.searchParams,
        authorization,
        body: Buffer.concat(chunks),
      };
      requests.push(request);
      if (authorization === wanted) handle(request, response);
      else sendJson(response, 401, { message: 'Bad credentials' });
    });
  };
  const sessions = new Set<ServerHttp2Session>();
  const server = version === 'HTTP/2' ? createSecureServer(certificate, answer) : createServer(certificate, answer);
  server.on('session', (session: ServerHttp2Session) => sessions.add(session));
  const port = await listen(server);
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    if ('closeAllConnections' in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, requests, wanted, close };
}

export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export function sendText(response: Response, type: string, body: string | Buffer): void {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
