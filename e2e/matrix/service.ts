import { createServer } from 'node:https';
import type { ServerResponse } from 'node:http';
import type { Certificate } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';

/** A request to a service, with its body read. */
interface ServiceRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly body: Buffer;
}

/** An HTTPS service that refuses requests without its credential, and its received requests. */
export interface Service {
  readonly port: number;
  readonly requests: ServiceRequest[];
  /** The Authorization header it accepts. */
  readonly wanted: string;
  close(): Promise<void>;
}

export type ServiceHandler = (request: ServiceRequest, response: ServerResponse) => void;

export async function startService(certificate: Certificate, wanted: string, handle: ServiceHandler): Promise<Service> {
  const requests: ServiceRequest[] = [];
  const server = createServer(certificate, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '/', 'https://service.invalid');
      const { authorization } = incoming.headers;
      const request = {
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
  });
  const port = await listen(server);
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, requests, wanted, close };
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export function sendText(response: ServerResponse, type: string, body: string | Buffer): void {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
}
