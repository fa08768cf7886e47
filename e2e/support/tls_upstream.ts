import type { Server } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { ByteReader } from './byte_reader.ts';
import { type MessageBody, type MessageHead, readBody, readHead } from './http_message.ts';
import type { Certificate } from './test_ca.ts';

/** A request as the upstream received it. */
export interface SeenRequest extends MessageHead {
  readonly method: string;
  readonly target: string;
  /** The connection's number, from 0, in order of acceptance. */
  readonly connection: number;
  /** The server name in the client's TLS hello. */
  readonly serverName: string | false | null;
  /** The body once it is read; empty before. */
  body: MessageBody;
}

/** One request while it is answered. The handler writes raw bytes, so a reply can be anything. */
export interface Exchange {
  readonly request: SeenRequest;
  readonly socket: TLSSocket;
  readonly reader: ByteReader;
  readBody(): Promise<MessageBody>;
  write(bytes: string | Buffer): void;
}

export type Handler = (exchange: Exchange) => Promise<void> | void;

/** A TLS server without an HTTP library, so that it records and sends exact bytes. */
export interface TlsUpstream {
  readonly port: number;
  readonly requests: SeenRequest[];
  /** Sets the handler of all requests from now on. */
  onRequest(handler: Handler): void;
  /** Clears the recorded requests and restores the default answer. */
  reset(): void;
  /** The newest request. Throws if there is none. */
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

/** Listens on a free loopback port and returns it. */
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
