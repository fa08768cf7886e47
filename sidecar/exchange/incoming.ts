import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import { requestFraming } from '../../shared/net/http/http1_framing.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import type { FieldList, Http2HeadLimits } from '../../shared/net/http/http2_head.ts';
import { isAuthorityField, isWebSocketConnect, parseRequestFields } from '../../shared/net/http/http2_head.ts';
import { fieldValues, parseRequestHead, skipEmptyLine } from '../../shared/net/http/http1_head.ts';
import type { Authority } from '../../shared/net/host.ts';
import { parseAuthority } from '../../shared/net/host.ts';
import { hostOnPort, HTTPS_PORT, nameOfHost, PLAIN_PORT, portOfHost } from '../../shared/net/host_port.ts';
import type { ParsedTarget } from '../../shared/net/http/target.ts';
import { parsePlainTarget } from '../../shared/net/plain_target.ts';
import { parseTarget } from '../../shared/net/http/target.ts';

/** A decrypted request that can be read in only one way. */
export interface Incoming {
  readonly head: RequestHead;
  /** The head as received; null for HTTP/2, whose fields are all in `head`. */
  readonly raw: Buffer | null;
  readonly framing: BodyFraming;
  readonly target: ParsedTarget;
  /** The Host header; null on HTTP/1.0 without one. */
  readonly authority: Authority | null;
}

/**
 * Reads a request head from a tunnel to `host`. Refuses heads that two parsers could read as two different requests (RFC
 * 9112 sections 3.2, 5 and 6). Such a request is never forwarded, credentialed or not.
 */
export function parseIncoming(received: Buffer, host: string, maxHeaders: number): Result<Incoming, Refusal> {
  const raw = received.subarray(skipEmptyLine(received, 0));
  const head = parseRequestHead(raw.toString('latin1'), { maxHeaders });
  if (!head.ok && head.error.reason === 'too_many_headers') return err(refusal('head_too_large', head.error.message));
  if (!head.ok) return invalid(head.error.message);
  const framing = requestFraming(head.value);
  if (!framing.ok) return invalid(framing.error.message);
  const target = parseTarget(head.value.target, head.value.method);
  if (!target.ok) return invalid(target.error.message);
  const authority = hostHeader(head.value, host);
  if (!authority.ok) return authority;
  return ok({ head: head.value, raw, framing: framing.value, target: target.value, authority: authority.value });
}

/**
 * Reads the head of a plain request to a proxy, with the same checks. What is sent on is the request that the host itself
 * receives: its target has no authority, and every other byte is the client's.
 */
export function parsePlainIncoming(received: Buffer, host: string, maxHeaders: number): Result<Incoming, Refusal> {
  const raw = received.subarray(skipEmptyLine(received, 0));
  const head = parseRequestHead(raw.toString('latin1'), { maxHeaders });
  const plain = head.ok ? parsePlainTarget(head.value.target, head.value.method) : null;
  if (!head.ok) return parseIncoming(raw, host, maxHeaders);
  if (plain === null) return invalid('the request target must be an http:// URL');
  if (!plain.ok) return invalid(plain.error.message);
  const { method, target } = head.value;
  const { origin, ...authority } = plain.value;
  const before = Buffer.from(`${method} ${origin}`, 'latin1');
  const sent = parseIncoming(
    Buffer.concat([before, raw.subarray(method.length + 1 + target.length)]),
    host,
    maxHeaders,
  );
  return sent.ok ? ok({ ...sent.value, target: { ...sent.value.target, authority } }) : sent;
}

/** A request of HTTP/2 as it was received. */
export interface StreamRequest {
  readonly fields: FieldList;
  /** The names that the client marked as never indexed. */
  readonly neverIndexed: readonly string[];
  /** It has no body. */
  readonly isWhole: boolean;
}

/** Reads a request of HTTP/2 with the same checks. Its body ends with the stream, so no other request can be hidden in it. */
export function parseStreamRequest(
  { fields, neverIndexed, isWhole }: StreamRequest,
  host: string,
  limits: Http2HeadLimits,
): Result<Incoming, Refusal> {
  const head = parseRequestFields(fields, neverIndexed, limits);
  if (!head.ok && head.error.reason !== 'invalid_fields') return err(refusal('head_too_large', head.error.message));
  if (!head.ok) return invalid(head.error.message);
  const target = parseTarget(head.value.target, head.value.method);
  if (!target.ok) return invalid(target.error.message);
  const authority = hostHeader(withoutSameHost(head.value), host);
  if (!authority.ok) return authority;
  // What follows the head of a WebSocket is no body: nothing reads it before the upstream has answered.
  const framing = isWhole || isWebSocketConnect(head.value) ? NO_BODY : UNTIL_END;
  return ok({ head: head.value, raw: null, framing, target: target.value, authority: authority.value });
}

const NO_BODY: BodyFraming = { kind: 'none' };
const UNTIL_END: BodyFraming = { kind: 'until-close' };

/** A Host beside an `:authority` says the same (RFC 9113 section 8.3.1), or there are two authorities. */
function withoutSameHost(head: RequestHead): RequestHead {
  const [authority, ...hosts] = head.fields.filter(({ name }) => name === 'host');
  if (authority === undefined || !isAuthorityField(authority)) return head;
  return hosts.every(({ value }) => value === authority.value) ? { ...head, fields: [authority] } : head;
}

function hostHeader(head: RequestHead, host: string): Result<Authority | null, Refusal> {
  const values = fieldValues(head.fields, 'host');
  if (values.length > 1) return invalid('a request has one Host header (RFC 9112 section 3.2); this one has several');
  const [value] = values;
  if (value === undefined) {
    if (head.version === '1.0') return ok(null);
    return invalid('an HTTP/1.1 request needs a Host header (RFC 9112 section 3.2)');
  }
  // The tunnel's host is already canonical, as the parsed value would be.
  if (value === host) {
    const port = portOfHost(host);
    return ok({ host: nameOfHost(host), port: port === HTTPS_PORT ? null : port });
  }
  const authority = parseAuthority(value);
  return authority.ok ? authority : invalid(`Host header: ${authority.error.message}`);
}

function invalid(message: string): { readonly ok: false; readonly error: Refusal } {
  return err(refusal('invalid_request', message));
}

/**
 * Checks that every place that names the request's authority names the tunnel's host (design section 5, invariant 1). The
 * credential is chosen by the dialled host, so a request for another host would carry it elsewhere.
 */
export function checkAuthority(
  incoming: Incoming,
  host: string,
  sni: string | null,
  isPlain = false,
): Result<void, Refusal> {
  if (sni !== null && sni.toLowerCase() !== nameOfHost(host)) return mismatch('the TLS server name', host);
  if (incoming.authority !== null && !isHost(incoming.authority, host, isPlain))
    return mismatch('the Host header', host);
  const named = incoming.target.authority;
  if (named !== null && !isHost(named, host, isPlain)) return mismatch('the absolute request target', host);
  return ok(undefined);
}

/** Without a port, an authority means the one of its URL's scheme. */
function isHost(authority: Authority, host: string, isPlain: boolean): boolean {
  if (isPlain) return authority.host === host && (authority.port ?? PLAIN_PORT) === PLAIN_PORT;
  return hostOnPort(authority.host, authority.port ?? HTTPS_PORT) === host;
}

function mismatch(place: string, host: string): { readonly ok: false; readonly error: Refusal } {
  return err(refusal('authority_mismatch', `${place} names another host than the tunnel to ${host}`));
}

/** The refusal of a request that a server could read as an operation that it is not (design section 5, invariant 8). */
export function ambiguousTarget(host: string): Refusal {
  return refusal(
    'ambiguous_target',
    `a server could read this request as a connector operation for ${host}, but as written it is not; write its path as the service documents it, in the same letter case, without "//", dot segments, ";", a suffix or slash at the end, or needless escapes; write its method in upper case, and put neither path nor method in a header, the query or the body`,
  );
}
