import { Agent as HttpAgent, type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import type { UpstreamProxy } from '../shared/net/upstream_proxy.ts';
import { ProxyAgent } from './connection/proxy_agent.ts';
import { createTrustingContext } from './trusted_roots.ts';

interface NodeFetchOptions {
  /** PEM certificates to trust in addition to the runtime's and the system's. */
  readonly extraCa: readonly string[];
  /** The proxy for https, but for exempt hosts. */
  readonly proxy: UpstreamProxy | null;
}

/**
 * `fetch` with the same roots and the same proxy as the sidecar's calls. It ignores proxy variables, also where Node's own
 * would obey them. A body is text, redirects are not followed, and nothing is compressed.
 */
export function createNodeFetch({ extraCa, proxy }: NodeFetchOptions): typeof fetch {
  let secure: HttpsAgent | null = null;
  const plain = new HttpAgent({ keepAlive: true });
  const agentFor = (url: URL): HttpAgent => {
    if (url.protocol === 'http:') return plain;
    const kept = { keepAlive: true, secureContext: createTrustingContext(extraCa) };
    return (secure ??= proxy === null ? new HttpsAgent(kept) : new ProxyAgent(proxy, kept));
  };
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { what, body } = toRequest(init, agentFor(url));
    try {
      return responseOf(await replyTo(url, what, body));
    } catch (cause) {
      throw init.signal?.aborted === true ? init.signal.reason : new TypeError('fetch failed', { cause });
    }
  };
}

/** The request of a call of `fetch`, whose reply is not compressed. Throws for a body that is not text. */
export function toRequest(
  init: RequestInit,
  agent: HttpAgent,
): { readonly what: RequestOptions; readonly body: string | null } {
  const body = init.body ?? null;
  if (body !== null && typeof body !== 'string') throw new TypeError('the body of a request is not text');
  const headers = { ...Object.fromEntries(new Headers(init.headers)), 'accept-encoding': 'identity' };
  const what: RequestOptions = {
    method: init.method ?? 'GET',
    headers: body === null ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
    agent,
    ...(init.signal ? { signal: init.signal } : {}),
  };
  return { what, body };
}

/** Sends a request. Rejects with the reason of `signal` if that is aborted before the head of the reply is there. */
export async function replyTo(url: URL, what: RequestOptions, body: string | null): Promise<IncomingMessage> {
  const open = url.protocol === 'http:' ? httpRequest : httpsRequest;
  const { signal = null } = what;
  const waiting = new AbortController();
  try {
    return await new Promise((resolve, reject) => {
      const outgoing = open(url, what, resolve);
      // The listener stays: an unhandled 'error' event of a request ends the process.
      outgoing.on('error', reject);
      // A request that still waits for its connection through the proxy does not report its end by itself.
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true, signal: waiting.signal });
      if (signal?.aborted === true) reject(signal.reason);
      outgoing.on('upgrade', (_reply, socket) => socket.destroy());
      outgoing.on('close', () => reject(Object.assign(new Error('no reply'), { code: 'ECONNRESET' })));
      outgoing.end(body ?? undefined);
    });
  } finally {
    // Removes the listener: a signal may outlive its requests, and would keep each reply.
    waiting.abort();
  }
}

const NO_BODY = new Set([204, 205, 304]);

/** The reply of `fetch`. `bodyOf` is not called for a status that has no body; throws for one that `Response` refuses. */
export function responseOf(
  reply: IncomingMessage,
  bodyOf: (reply: IncomingMessage) => Readable = (all) => all,
): Response {
  const { statusCode: status = 502, statusMessage: statusText = '' } = reply;
  const headers = new Headers();
  for (const [name, values] of Object.entries(reply.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  if (NO_BODY.has(status)) {
    reply.resume();
    return new Response(null, { status, headers });
  }
  const body = Readable.toWeb(bodyOf(reply)) as ReadableStream<Uint8Array>;
  return new Response(body, { status, statusText, headers });
}
