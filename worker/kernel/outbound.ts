import { formatQuantity } from '../../shared/model/limit_settings.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { isIpLiteral } from '../../shared/net/ip_literal.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** An outgoing call of the control plane (design section 7). All of them use this port. */
export interface Outbound {
  call(request: OutboundRequest): Promise<Result<OutboundReply, Failure<OutboundFailureReason>>>;
  /** Absent where the runtime has no such connections (workerd). */
  readonly stream?: (request: OutboundStream) => Promise<Result<StreamEnd, Failure<OutboundFailureReason>>>;
}

/**
 * How the other side closed a connection after the last byte. `tls`: by its `close_notify`, so that its TLS has read every byte.
 * `tcp`: only below, which a program that dies does too, and anybody on the way can.
 */
export type StreamEnd = 'tls' | 'tcp';

/** Bytes that are sent over a TLS connection of their own, to a verified host. */
export interface OutboundStream {
  readonly host: string;
  readonly port: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly timeoutMs: number;
}

export interface OutboundRequest {
  readonly method: string;
  /** https on port 443 unless {@link anyPort}, or plain http to loopback in local mode. */
  readonly url: string;
  /** Lower-case names. Values are byte text. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | null;
  /** Default: {@link CALL_LIMITS}. */
  readonly limits?: CallLimits;
  /** The URL is a stranger's: local mode allows no more than a hosted control plane does. */
  readonly isStrangers?: boolean;
  /** The URL may name another port than 443: it is of a server that people run themselves, such as Vault. */
  readonly anyPort?: true;
}

/** A complete reply. Redirects are returned as replies and never followed. */
export interface OutboundReply {
  readonly status: number;
  readonly contentType: string;
  /** The `Retry-After` header, if any. */
  readonly retryAfter?: string;
  /** The `WWW-Authenticate` header, if any. */
  readonly wwwAuthenticate?: string;
  /** The `Mcp-Session-Id` header, if any. */
  readonly mcpSessionId?: string;
  /** Decoded, if the upstream compressed it unasked. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Why a call got no reply. The message never contains a query, a header or a body. */
export type OutboundFailureReason =
  | 'upstream_unreachable'
  | 'upstream_tls_failed'
  | 'upstream_invalid_reply'
  | 'upstream_response_too_large';

/** The limits of one call. */
interface CallLimits {
  readonly maxReplyBytes: number;
  readonly timeoutMs: number;
}

/** Limits for calls that the control plane makes for itself; settings for runs do not change them. */
export const CALL_LIMITS: CallLimits = { maxReplyBytes: 4 * 1024 * 1024, timeoutMs: 30_000 };

const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|\[::1\])$/;

/** Why a URL must not be called; null if it may. What its name resolves to is checked when dialling. */
export function targetProblem(
  url: URL,
  isLocal: boolean,
  { anyPort }: Pick<OutboundRequest, 'anyPort'> = {},
): Failure<OutboundFailureReason> | null {
  if (url.username !== '' || url.password !== '') return refuseCall(url, 'its URL contains a user name or password');
  if (url.protocol === 'http:' && LOOPBACK.test(url.hostname)) {
    return isLocal ? null : refuseCall(url, 'a hosted control plane calls https URLs only');
  }
  if (url.protocol !== 'https:') return refuseCall(url, 'only https URLs are called');
  if (url.port !== '' && anyPort !== true) return refuseCall(url, 'only port 443 is called');
  if (isIpLiteral(url.hostname)) return refuseCall(url, 'use a host name: IP addresses are not called');
  const isPublicName = /[^.][.][^.]/.test(url.hostname);
  return isLocal || isPublicName ? null : refuseCall(url, 'a hosted control plane calls public host names only');
}

/** Why nothing may be streamed to a host; null if it may. What its name resolves to is checked when dialling. */
export function streamProblem(
  { host }: Pick<OutboundStream, 'host'>,
  isLocal: boolean,
): Failure<OutboundFailureReason> | null {
  const isPublicName = /[^.][.][^.]/.test(host) && !isIpLiteral(host);
  return isLocal || isPublicName ? null : unreachableHost(host, 'a hosted control plane calls public host names only');
}

function refuseCall(url: URL, why: string): Failure<OutboundFailureReason> {
  return { reason: 'upstream_unreachable', message: `${url.hostname} cannot be called: ${why}` };
}

function tooLargeReply(host: string, maxBytes: number): Failure<OutboundFailureReason> {
  const message = `the reply of ${host} is larger than ${formatQuantity(maxBytes, 'bytes')}: request less at a time`;
  return { reason: 'upstream_response_too_large', message };
}

/** Collects the body's chunks up to the limit. Refuses with `upstream_response_too_large`. */
export class ReplyBody {
  readonly #host: string;
  readonly #chunks: Uint8Array[] = [];
  readonly #maxBytes: number;
  #size = 0;

  constructor(host: string, maxBytes: number) {
    this.#host = host;
    this.#maxBytes = maxBytes;
  }

  add(chunk: Uint8Array): Failure<OutboundFailureReason> | null {
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) return tooLargeReply(this.#host, this.#maxBytes);
    this.#chunks.push(chunk);
    return null;
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#size);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }
}

/** Decodes a body, up to the same limit. Refuses an unknown content coding. */
export async function decodeBody(
  host: string,
  coding: string,
  body: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<Result<Uint8Array<ArrayBuffer>, Failure<OutboundFailureReason>>> {
  const name = coding.trim().toLowerCase();
  if (name === '' || name === 'identity' || body.length === 0) return ok(body);
  if (name !== 'gzip' && name !== 'deflate')
    return err(invalidReply(host, 'has a Content-Encoding that was not requested'));
  try {
    const plain = new Blob([body]).stream().pipeThrough(new DecompressionStream(name));
    return await readBody(host, plain, maxBytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return err(invalidReply(host, 'is compressed, and its compressed data is corrupt'));
  }
}

/** Reads a stream up to the limit and cancels it beyond. Throws the stream's error. */
export async function readBody(
  host: string,
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<Result<Uint8Array<ArrayBuffer>, Failure<OutboundFailureReason>>> {
  const body = new ReplyBody(host, maxBytes);
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return ok(body.bytes());
    const problem = body.add(value);
    if (problem === null) continue;
    await reader.cancel();
    return err(problem);
  }
}

/** The reply headers that are passed on. */
export function carryHeaders(
  header: (name: 'retry-after' | 'www-authenticate' | 'mcp-session-id') => string | string[] | null | undefined,
): Pick<OutboundReply, 'retryAfter' | 'wwwAuthenticate' | 'mcpSessionId'> {
  const [retryAfter, wwwAuthenticate] = [header('retry-after'), header('www-authenticate')];
  const mcpSessionId = header('mcp-session-id');
  return {
    ...(typeof retryAfter === 'string' && { retryAfter }),
    ...(typeof wwwAuthenticate === 'string' && { wwwAuthenticate }),
    ...(typeof mcpSessionId === 'string' && { mcpSessionId }),
  };
}

export function invalidReply(host: string, problem: string): Failure<OutboundFailureReason> {
  return { reason: 'upstream_invalid_reply', message: `the reply of ${host} ${problem}` };
}

export function unreachableHost(host: string, problem: string): Failure<OutboundFailureReason> {
  return { reason: 'upstream_unreachable', message: `${host} could not be reached (${problem})` };
}
