import { Agent, type IncomingMessage, request } from 'node:http';

/** One call of the daemon. */
export interface EndpointCall {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** Told once the whole request is with the system; also when it failed before. */
  readonly onSent?: () => void;
}

/** Where the daemon listens, and the token that it knows us by. */
export class Endpoint {
  readonly #url: URL;
  readonly #token: string;
  // Of its own: the one that is shared may send everything through a proxy. A connection for each call: one that was
  // kept may be closed at the other end, and nobody could tell whether a call on it was heard.
  readonly #agent = new Agent({ keepAlive: false });

  constructor(url: URL, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** The head of the reply, whatever its status. Rejects when there is none. */
  call({ method, headers, body, signal, onSent = () => undefined }: EndpointCall): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request(this.#url, {
        method,
        agent: this.#agent,
        headers: {
          ...headers,
          authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        },
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.on('finish', onSent);
      outgoing.on('error', (error) => {
        onSent();
        reject(error);
      });
      outgoing.on('response', resolve);
      outgoing.end(body);
    });
  }
}

/** The whole body of a reply as text. Rejects when it is longer than `maxBytes`. */
export async function bodyText(reply: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of reply) {
    size += chunk.length;
    if (size > maxBytes) throw new Error('the reply is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
