import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { ApiCall } from './http_client.ts';

/** Without `import`: that reads every export of the module, and one of them loads Node's `fetch`, which takes 40 ms. */
const { request } = process.getBuiltinModule('node:http');

/**
 * Calls a program of this machine over plain HTTP, as `fetch` would, without loading it. It uses no proxy and a connection of its
 * own: the program may have been restarted since the last call.
 */
export const callLocally: ApiCall = async (url, { method, headers, body = null, signal }) => {
  const length = body !== null && { 'content-length': Buffer.byteLength(body) };
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = request(url, { method, agent: false, signal, headers: { ...headers, ...length } }, resolve);
    call.on('error', (error) => reject(reasonOf(error, signal, 'fetch failed')));
    call.end(body ?? undefined);
  });
  const status = reply.statusCode ?? 0;
  return {
    status,
    ok: status >= 200 && status <= 299,
    headers: { get: (name) => reply.headersDistinct[name.toLowerCase()]?.join(', ') ?? null },
    text: () => text(piecesOf(reply, signal)),
    body: piecesOf(reply, signal),
  };
};

async function* piecesOf(reply: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* reply;
  } catch (error) {
    throw reasonOf(error, signal, 'terminated');
  }
}

function reasonOf(cause: unknown, signal: AbortSignal, message: string): unknown {
  return signal.aborted ? signal.reason : new TypeError(message, { cause });
}
