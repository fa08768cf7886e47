/**
 * Node's own HTTP parser (llhttp) as a second parser: a real `http.Server` or client over an in-memory stream, no sockets,
 * strict mode. Its reading is compared with that of shared/net/http/http1_*.ts for the same bytes.
 */
import { Buffer } from 'node:buffer';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';

/** One message as a parser read it; all text is latin1. */
export interface ReadMessage {
  /** `METHOD target version` of a request, `version status reason` of a reply. */
  readonly start: string;
  /** Names as sent, and values without the whitespace around them. */
  readonly fields: readonly (readonly [string, string])[];
  readonly body: string;
  readonly trailers: readonly (readonly [string, string])[];
}

/** The messages that were read completely, and how reading ended: at the end of the input, within a message, or with a refusal. */
export interface Reading {
  readonly messages: readonly ReadMessage[];
  readonly end: 'complete' | 'truncated' | 'refused';
  readonly reason: string;
}

const STRICT = { insecureHTTPParser: false, maxHeaderSize: 256 * 1024 };

function pairs(raw: readonly string[]): [string, string][] {
  return raw.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, raw[at + 1] ?? '']] : []));
}

/** A stream whose readable side delivers `input` once and then ends, and whose writable side accepts everything. */
function inMemorySocket(input: Uint8Array): Duplex {
  let given = false;
  return new Duplex({
    allowHalfOpen: true,
    read() {
      if (!given) this.push(Buffer.from(input));
      if (given) this.push(null);
      given = true;
    },
    write(_chunk, _encoding, done) {
      done();
    },
  });
}

/** Collects a message's payload as it arrives, so that a complete message can be read at any time. */
class Collected {
  readonly #message: IncomingMessage;
  readonly #pieces: Buffer[] = [];

  constructor(message: IncomingMessage) {
    this.#message = message;
    message.on('data', (piece: Buffer) => this.#pieces.push(piece));
    message.on('error', () => undefined);
  }

  /** The message, if the parser has seen its end, including what is still buffered. */
  whole(start: string): ReadMessage[] {
    if (!this.#message.complete) return [];
    while (this.#message.read() !== null);
    const { rawHeaders, rawTrailers } = this.#message;
    const body = Buffer.concat(this.#pieces).toString('latin1');
    return [{ start, fields: pairs(rawHeaders), body, trailers: pairs(rawTrailers) }];
  }
}

function endOf(error: unknown): Pick<Reading, 'end' | 'reason'> {
  const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  if (reason === 'HPE_CLOSED_CONNECTION') return { end: 'complete', reason };
  return { end: reason === 'HPE_INVALID_EOF_STATE' || reason === 'ECONNRESET' ? 'truncated' : 'refused', reason };
}

/** Every request that llhttp reads from `input`, which then ends. */
export function llhttpRequests(input: Uint8Array): Promise<Reading> {
  const server = createServer({ ...STRICT, requireHostHeader: false, connectionsCheckingInterval: 2 ** 30 });
  // Otherwise the server drops requests that it has read but not yet emitted when the input ends.
  Object.assign(server, { httpAllowHalfOpen: true });
  const incoming: { readonly start: string; readonly collected: Collected }[] = [];
  const onRequest = (message: IncomingMessage, response: ServerResponse): void => {
    const start = `${message.method} ${message.url} ${message.httpVersion}`;
    incoming.push({ start, collected: new Collected(message) });
    message.on('end', () => response.end());
  };
  server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest);
  const socket = inMemorySocket(input);
  return new Promise((resolve) => {
    const finish = (end: Pick<Reading, 'end' | 'reason'>): void => {
      resolve({ messages: incoming.flatMap(({ start, collected }) => collected.whole(start)), ...end });
      socket.destroy();
      server.close();
    };
    server.on('clientError', (error) => finish(endOf(error)));
    // The server handles the end of the input after this listener, so a truncated message is known one turn later.
    socket.on('end', () => setImmediate(() => finish({ end: 'complete', reason: '' })));
    server.emit('connection', socket);
  });
}

/** The reply that llhttp reads from `input` as the answer to `method`; skips interim replies before it. */
export function llhttpReply(input: Uint8Array, method: string): Promise<Reading> {
  const createConnection = (): Duplex => inMemorySocket(input);
  const client = request({ ...STRICT, createConnection, method, path: '/' });
  return new Promise((resolve) => {
    client.on('error', (error) => resolve({ messages: [], ...endOf(error) }));
    client.on('response', (message) => {
      const collected = new Collected(message);
      const start = `${message.httpVersion} ${message.statusCode} ${message.statusMessage}`;
      const finish = (end: Pick<Reading, 'end' | 'reason'>): void =>
        resolve({ messages: collected.whole(start), ...end });
      client.prependListener('error', (error) => finish(endOf(error)));
      message.on('error', (error) => finish(endOf(error)));
      message.on('end', () => finish({ end: 'complete', reason: '' }));
    });
    client.end();
  });
}
