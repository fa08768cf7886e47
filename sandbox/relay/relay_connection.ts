import { connect, type Socket } from 'node:net';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { requestFraming } from '../../shared/net/http/http1_framing.ts';
import {
  formatRequestHead,
  headerField,
  parseRequestHead,
  type RequestHead,
} from '../../shared/net/http/http1_head.ts';
import { Connection, ConnectionLost } from '../../machine/connection/connection.ts';
import { readHead } from '../../machine/connection/read_head.ts';
import { splice } from '../../machine/connection/splice.ts';

/** The proxy that a relay hands its connections to, and the credentials it adds. */
export interface RelayTarget {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization for the session. */
  readonly authorization: string;
}

const MAX_HEAD_BYTES = 16 * 1024;
const MAX_HEADERS = 100;
const HEAD_TIMEOUT_MS = DEFAULT_LIMITS.firstHeadSeconds * 1000;
const NOT_RELAYED = 'HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
const ACCEPTED = /^HTTP\/1\.[01] 2\d\d[ \r]/;

/**
 * Serves one connection: forwards one proxy request, with the session's credentials if `trusted`, and after a 2xx copies bytes
 * both ways. Any other answer ends the connection, so that no second request can use the added credentials. An untrusted client
 * gets the proxy's refusal, which the proxy records.
 */
export async function relayConnection(
  socket: Socket,
  { isTrusted: trusted, onHead }: { readonly isTrusted: boolean; readonly onHead: () => void },
  target: RelayTarget,
): Promise<void> {
  const client = new Connection(socket);
  const head = await readFirstHead(client);
  if (head === null || (!trusted && head.method !== 'CONNECT')) {
    client.destroy();
    return;
  }
  onHead();
  if (trusted && head.method !== 'CONNECT' && goesOn(head)) {
    client.write(NOT_RELAYED);
    client.end();
    await waitForDelivery(client);
    client.destroy();
    return;
  }
  const proxy = new Connection(connect({ ...target, noDelay: true, allowHalfOpen: true }));
  client.onClosed(() => proxy.destroy());
  try {
    proxy.write(formatRequestHead(withAuthorization(head, trusted ? target.authorization : null)));
    await answer(client, proxy, trusted && head.method === 'CONNECT');
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  } finally {
    proxy.destroy();
    client.destroy();
  }
}

/**
 * Whether a body or a WebSocket follows the head. Of a plain request only the head is relayed. The proxy drops every other upgrade,
 * and the request is answered without it.
 */
function goesOn(head: RequestHead): boolean {
  const framing = requestFraming(head);
  if (!framing.ok) return true;
  const { value: body } = framing;
  const isWhole = body.kind === 'none' || (body.kind === 'length' && body.length === 0);
  return !isWhole || head.fields.some(({ name, value }) => name === 'upgrade' && /websocket/i.test(value));
}

/** The request head; null if none arrived in time, or it is malformed. */
async function readFirstHead(client: Connection): Promise<RequestHead | null> {
  const timer = setTimeout(() => client.destroy(), HEAD_TIMEOUT_MS);
  const read = await readHead(client, MAX_HEAD_BYTES)
    .catch(() => ({ kind: 'end' as const }))
    .finally(() => clearTimeout(timer));
  if (read.kind !== 'head') return null;
  const head = parseRequestHead(read.bytes.toString('latin1'), { maxHeaders: MAX_HEADERS });
  return head.ok ? head.value : null;
}

/** The head with only these credentials. */
function withAuthorization(head: RequestHead, authorization: string | null): RequestHead {
  const kept = head.fields.filter(({ name }) => name !== 'proxy-authorization');
  const added = authorization === null ? [] : [headerField('Proxy-Authorization', authorization)];
  return { ...head, fields: [...kept, ...added] };
}

async function answer(client: Connection, proxy: Connection, mayTunnel: boolean): Promise<void> {
  const reply = await readHead(proxy, MAX_HEAD_BYTES);
  if (reply.kind !== 'head') return;
  client.write(reply.bytes);
  if (mayTunnel && ACCEPTED.test(reply.bytes.toString('latin1'))) {
    await Promise.all([splice(client, proxy), splice(proxy, client)]);
    return;
  }
  proxy.end();
  await splice(proxy, client);
  await waitForDelivery(client);
}

/** Waits until everything written was sent, or the client disconnects. */
function waitForDelivery(client: Connection): Promise<void> {
  return new Promise((resolve) => {
    client.onClosed(resolve);
    client.stream.once('finish', resolve);
    if (client.stream.writableFinished) resolve();
  });
}
