import type { OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
import type { HeaderField, RequestHead } from '../../shared/net/http/http1_head.ts';
import { connectionTokens, fieldValues, headerField } from '../../shared/net/http/http1_head.ts';
import { isWebSocketConnect } from '../../shared/net/http/http2_head.ts';
import type { Incoming } from './incoming.ts';

/** Hop-by-hop headers (RFC 9110 section 7.6.1) and the proxy's own, which are never forwarded with a credential. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'te', 'upgrade']);
const CLOSE = headerField('Connection', 'close');
const PROXY_ONLY = new Set(['proxy-authorization', 'proxy-connection']);

/** Trailers (lines, each with its CRLF) without fields that are for this proxy: libraries of HTTP/2 read trailers like headers. */
export function withoutProxyFields(trailers: string): string {
  if (trailers === '') return '';
  const lines = trailers
    .split('\r\n')
    .filter((line) => !PROXY_ONLY.has(line.split(':', 1)[0]?.trim().toLowerCase() ?? ''));
  return lines.join('\r\n');
}
/** Content codings that can be decoded, and so scrubbed. */
const READABLE_CODINGS = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd', 'identity']);
const ALL_READABLE = 'gzip, deflate, br, zstd';
/** The codings of single messages in a reply's body (gRPC, Connect), which are not decoded. */
const PER_MESSAGE_CODINGS = new Set(['grpc-accept-encoding', 'connect-accept-encoding']);
/** What most clients send; it is left unchanged. */
const ONLY_READABLE = /^(?:gzip|deflate|br|zstd)(?:, ?(?:gzip|deflate|br|zstd))*$/;

/**
 * The head of a request that gets a credential, before injection. Hop-by-hop headers and every header that Connection
 * nominates are dropped before the credential is added, so that the credential cannot be nominated away (design section 5,
 * invariant 3); a `Connection: close` stays. Accept-Encoding is limited to the codings that can be scrubbed, of messages of gRPC too. An HTTP/1.0
 * request without a Host gets the tunnel's. A WebSocket handshake keeps its upgrade, without extensions.
 */
export function prepareCredentialedRequest(incoming: Incoming, host: string): OutgoingRequest {
  const { head } = incoming;
  const nominated = connectionTokens(head.fields);
  const upgrade = isWebSocketUpgrade(head);
  // Without a Host the server picks its default site, which may not be the host that the credential is for.
  const fields: HeaderField[] = incoming.authority === null ? [headerField('Host', host)] : [];
  for (const field of head.fields) {
    const kept = head.version === '2' ? keepStreamField(field, head) : keepField(field, nominated, upgrade);
    if (kept !== null) fields.push(kept);
  }
  return { method: head.method, target: originForm(incoming), host, fields };
}

/** True for a WebSocket opening handshake (RFC 6455 section 4.1, RFC 8441 section 5) that offers no other protocol. */
export function isWebSocketUpgrade(head: RequestHead): boolean {
  if (head.version === '2') return isWebSocketConnect(head);
  return head.method === 'GET' && namesOnlyWebSocket(head.fields) && connectionTokens(head.fields).has('upgrade');
}

/** Whether every protocol in the Upgrade headers is `websocket`, and there is one. */
export function namesOnlyWebSocket(fields: readonly HeaderField[]): boolean {
  const protocols = fieldValues(fields, 'upgrade').flatMap((value) => value.split(','));
  return protocols.length > 0 && protocols.every((protocol) => protocol.trim().toLowerCase() === 'websocket');
}

function originForm({ target }: Incoming): string {
  return target.query === null ? target.path : `${target.path}?${target.query}`;
}

function keepField(field: HeaderField, nominated: ReadonlySet<string>, upgrade: boolean): HeaderField | null {
  const { name } = field;
  if (upgrade && name === 'connection') return headerField('Connection', 'Upgrade');
  if (upgrade && name === 'upgrade') return headerField('Upgrade', 'websocket');
  if (upgrade && name === 'sec-websocket-extensions') return null;
  // The tunnel ends after this reply, and the upstream connection with it, so a reply without `close` would be wrong.
  if (name === 'connection' && nominated.has('close')) return CLOSE;
  if (HOP_BY_HOP.has(name)) return null;
  if (nominated.has(name) && !END_TO_END.has(name)) return null;
  if (PER_MESSAGE_CODINGS.has(name)) return headerField(field.name, 'identity');
  if (name !== 'accept-encoding' || ONLY_READABLE.test(field.value)) return field;
  return headerField('Accept-Encoding', readableCodings(field.value));
}

/**
 * HTTP/2 has no Connection header. `te: trailers` is for the upstream itself; a Host says what the `:authority` does. What is
 * named `upgrade` is the `:protocol` of a WebSocket.
 */
function keepStreamField(field: HeaderField, head: RequestHead): HeaderField | null {
  const { fields } = head;
  if (field.name === 'te' || field.name === 'upgrade') return field;
  if (field.name === 'sec-websocket-extensions' && isWebSocketConnect(head)) return null;
  if (field.name === 'host' && field !== fields[0] && fields[0]?.name === 'host') return null;
  return keepField(field, NONE_NOMINATED, false);
}

const NONE_NOMINATED: ReadonlySet<string> = new Set();

/** Headers that frame or route the message stay even if Connection nominates them, so the body stays the one that was approved. */
const END_TO_END = new Set(['host', 'content-length', 'transfer-encoding', 'content-type', 'content-encoding']);

function readableCodings(value: string): string {
  const kept: string[] = [];
  for (const item of value.split(',')) {
    const coding = (item.split(';')[0] ?? '').trim().toLowerCase();
    if (coding === '*') kept.push(ALL_READABLE);
    else if (READABLE_CODINGS.has(coding)) kept.push(item.trim());
  }
  return kept.length === 0 ? 'identity' : kept.join(', ');
}

/** The headers for a body in memory: its length is known, and no one waits for `100 Continue`. */
export function reframe(fields: readonly HeaderField[], bodyBytes: number): HeaderField[] {
  const length = headerField('Content-Length', String(bodyBytes));
  const kept: HeaderField[] = [];
  let placed = false;
  for (const field of fields) {
    const frames = field.name === 'content-length' || field.name === 'transfer-encoding';
    if (frames && !placed) {
      kept.push(field.name === 'content-length' && field.value === length.value ? field : length);
      placed = true;
    }
    if (!frames && field.name !== 'expect' && field.name !== 'trailer') kept.push(field);
  }
  return kept;
}

/**
 * The head of a request without a credential in a tunnel that is limited to its host; null if it can go as it is. No upgrade but
 * a WebSocket's is asked for: after another one (h2c, TLS) the client could name other hosts unread. An HTTP/1.0 request
 * without a Host gets the tunnel's, because the server would pick a site.
 */
export function limitToHost({ head, authority }: Incoming, host: string): RequestHead | null {
  const upgrades = head.fields.some(({ name }) => UPGRADE_ONLY.has(name)) && !isWebSocketUpgrade(head);
  if (!upgrades && authority !== null) return null;
  const named = authority === null ? [headerField('Host', host)] : [];
  return { ...head, fields: [...named, ...(upgrades ? withoutUpgrade(head.fields) : head.fields)] };
}

/** Headers of an upgrade alone (RFC 9110 section 7.8, RFC 7540 section 3.2.1). */
const UPGRADE_ONLY = new Set(['upgrade', 'http2-settings']);

function withoutUpgrade(fields: readonly HeaderField[]): HeaderField[] {
  const others = [...connectionTokens(fields)].filter((token) => !UPGRADE_ONLY.has(token));
  const kept = fields.filter(({ name }) => name !== 'connection' && !UPGRADE_ONLY.has(name));
  return others.length === 0 ? kept : [...kept, headerField('Connection', others.join(', '))];
}

/** Drops only the headers meant for this proxy; null if there are none. Used on passthrough. */
export function withoutProxyHeaders(head: RequestHead): RequestHead | null {
  if (!head.fields.some((field) => PROXY_ONLY.has(field.name))) return null;
  return { ...head, fields: head.fields.filter((field) => !PROXY_ONLY.has(field.name)) };
}
