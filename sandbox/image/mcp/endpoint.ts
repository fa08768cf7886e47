import { Agent, type IncomingMessage, request } from 'node:http';

/** One call of the sidecar. */
interface EndpointCall {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** Called when the whole request was handed to the system, or failed before. */
  readonly onSent?: () => void;
}

/** The sidecar's address, and our token. */
export class Endpoint {
  readonly #url: URL;
  readonly #token: string;
  // Its own agent: the shared one may use a proxy. One connection per call: a kept connection may be closed at the
  // other end, and then nobody knows if a call on it was received.
  readonly #agent = new Agent({ keepAlive: false });

  constructor(url: URL, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** The head of the reply, with any status. Rejects if there is none. */
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

/** The whole body of a reply as text. Rejects if it is longer than `maxBytes`. */
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
