import type { Server } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { ByteReader } from './byte_reader.ts';
import { type MessageBody, type MessageHead, readBody, readHead } from './http_message.ts';
import type { Certificate } from './test_ca.ts';

/** A request as the upstream got it. */
export interface SeenRequest extends MessageHead {
  readonly method: string;
  readonly target: string;
  /** The connection's number, from 0, in the order they were accepted. */
  readonly connection: number;
  /** The name the client asked for in its TLS hello. */
  readonly serverName: string | false | null;
  /** The body once it was read; empty before. */
  body: MessageBody;
}

/** One request while it is answered: the handler writes raw bytes, so that a reply can be anything at all. */
export interface Exchange {
  readonly request: SeenRequest;
  readonly socket: TLSSocket;
  readonly reader: ByteReader;
  readBody(): Promise<MessageBody>;
  write(bytes: string | Buffer): void;
}

export type Handler = (exchange: Exchange) => Promise<void> | void;

/** A TLS server without an HTTP library, so that what it records and sends is exact to the byte. */
export interface TlsUpstream {
  readonly port: number;
  readonly requests: SeenRequest[];
  /** Answers the requests from now on. */
  onRequest(handler: Handler): void;
  /** Forgets what was seen and goes back to the plain answer. */
  reset(): void;
  /** The newest request. Throws when there is none. */
  last(): SeenRequest;
  close(): Promise<void>;
}

/** A complete reply with a length. */
export function reply(status: number, body: string | Buffer = 'ok', headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status} Status`, `Content-Length: ${bytes.length}`, ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

/** A chunked body of pieces of `size` bytes; `trailers` are whole lines. */
export function formatChunks(body: Buffer, size: number, trailers = ''): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size);
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailers}\r\n`)]);
}

const answerPlainly: Handler = async (exchange) => {
  await exchange.readBody();
  exchange.write(reply(200));
};

export async function startTlsUpstream(certificate: Certificate): Promise<TlsUpstream> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<TLSSocket>();
  let handler = answerPlainly;
  let connections = 0;
  const server = createServer({ ...certificate, ALPNProtocols: ['http/1.1'] }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.setNoDelay(true);
    void serve(socket, connections++, requests, (exchange) => handler(exchange));
  });
  server.on('tlsClientError', () => undefined);
  const port = await listen(server);
  return {
    port,
    requests,
    onRequest: (next) => (handler = next),
    reset: () => {
      handler = answerPlainly;
      requests.length = 0;
    },
    last: () => {
      const seen = requests.at(-1);
      if (seen === undefined) throw new Error('the upstream saw no request');
      return seen;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Listens on a free loopback port and gives it. */
export function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('the server has no port'));
      else resolve(address.port);
    });
  });
}

async function serve(socket: TLSSocket, connection: number, requests: SeenRequest[], handler: Handler): Promise<void> {
  const reader = new ByteReader(socket);
  for (;;) {
    const head = await readHead(reader);
    if (head === null) break;
    const [method = '', target = ''] = head.startLine.split(' ');
    const request: SeenRequest = Object.assign(head, {
      method,
      target,
      connection,
      serverName: socket.servername,
      body: { raw: Buffer.alloc(0), data: Buffer.alloc(0) },
    });
    requests.push(request);
    const write = (bytes: string | Buffer): void => {
      if (!socket.destroyed) socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    };
    const body = async (): Promise<MessageBody> => (request.body = await readBody(reader, request, false));
    await handler({ request, socket, reader, readBody: body, write });
    if (socket.destroyed || socket.writableEnded) break;
  }
  socket.end();
}
