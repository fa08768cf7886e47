import { type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { pipeline, Transform, type TransformCallback } from 'node:stream';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { CALLER_HEADER, type Caller as GatewayCaller, callerHeader, HOST_CALLER } from '../../machine/mcp_caller.ts';
import { ARGUMENT_HEADER } from '../../shared/mcp/tools/param_headers.ts';
import type { Session } from '../session/session.ts';
import type { Caller } from './callers.ts';
import { errorReply, localError, type LocalError, noSessionError } from './local_error.ts';
import type { McpOptions } from './mcp_options.ts';
import { toSentence } from '../../shared/model/sentence.ts';

/** Larger than the largest arguments of a tool call. */
export const MAX_MCP_BODY_BYTES = 8 * 1024 * 1024;

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE']);
/**
 * The request headers that are forwarded. All others stay here: the token that opened this API, and headers a client could
 * use to impersonate another caller. A tool names the headers of its arguments (`Mcp-Param-…`), by any token.
 */
const SENT_ON = /^(?:accept|accept-language|content-length|content-type|last-event-id|mcp-[a-z0-9-]{1,120})$/;
const SENT_BACK = /^(?:allow|content-type|mcp-[a-z0-9-]{1,120}|retry-after)$/;
const LOOPBACK_ORIGIN = /^https?:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i;

/** Requests that one session may have open at a time; each may carry a message of the largest size. */
export const MAX_MCP_REQUESTS_OF_SESSION = 64;

/** Counts the open requests of each session as its tunnels. */
export class OpenRequests {
  readonly #counts = new WeakMap<Pick<Session, 'openTunnel'>, number>();

  /** The function to call when the request ends; null if the session has reached its limit. */
  enter(session: Pick<Session, 'openTunnel'>, close: () => void): (() => void) | null {
    const count = this.#counts.get(session) ?? 0;
    const leave = count < MAX_MCP_REQUESTS_OF_SESSION ? session.openTunnel(close) : null;
    if (leave === null) return null;
    this.#counts.set(session, count + 1);
    return () => {
      leave();
      this.#counts.set(session, (this.#counts.get(session) ?? 1) - 1);
    };
  }
}

/** One request on its own connection, as Node's objects. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/**
 * `/v1/mcp`: forwards a request to the gateway and streams its reply back, until the client, its session or the gateway
 * ends. Only the sidecar decides whose request it is.
 */
export async function proxyMcp(
  { gateway }: Pick<McpOptions, 'gateway'>,
  caller: Extract<Caller, { readonly kind: 'host' | 'session' }>,
  exchange: Exchange,
  open: OpenRequests,
): Promise<Response> {
  const problem = requestProblem(exchange.incoming);
  if (problem !== null) return errorReply(problem);
  const ended = new AbortController();
  const done = caller.kind === 'host' ? () => undefined : open.enter(caller.session, () => ended.abort());
  if (done === null) {
    return errorReply(localError('too_many_tunnels', 'This session has reached its limit of open requests.'));
  }
  exchange.outgoing.once('close', done);
  const gone = AbortSignal.any([ended.signal, abortOnLeave(exchange.outgoing)]);
  const socket = await gateway.socket();
  if (!socket.ok) return errorReply(localError('gateway_unavailable', toSentence(socket.error)));
  const reply = await sendOn(socket.value, exchange.incoming, gatewayCaller(caller), gone);
  if (reply.ok) return sendBack(reply.value, exchange.outgoing, gone);
  return errorReply(
    caller.kind === 'session' && caller.session.ended ? noSessionError(caller.session.id) : reply.error,
  );
}

/** Checks the method and the browser's Origin: a page of another site may not call this endpoint. */
function requestProblem({ method = '', headers }: IncomingMessage): LocalError | null {
  if (!METHODS.has(method)) {
    return localError('method_not_allowed', 'This is an MCP endpoint: it accepts POST, GET and DELETE.');
  }
  if (headers.origin !== undefined && !LOOPBACK_ORIGIN.test(headers.origin)) {
    return localError('origin_not_allowed', 'Pages of other sites may not use this endpoint.');
  }
  return Number(headers['content-length'] ?? 0) > MAX_MCP_BODY_BYTES ? tooLargeError() : null;
}

function gatewayCaller(caller: Extract<Caller, { readonly kind: 'host' | 'session' }>): GatewayCaller {
  if (caller.kind === 'host') return HOST_CALLER;
  return { sessionId: caller.session.id, servers: caller.session.mcpServers };
}

/** Aborted when the client disconnects before its whole reply. */
function abortOnLeave(outgoing: ServerResponse): AbortSignal {
  const left = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) left.abort();
  });
  if (outgoing.destroyed) left.abort();
  return left.signal;
}

/** Resolves with the head of the reply. */
function sendOn(
  socketPath: string,
  incoming: IncomingMessage,
  caller: GatewayCaller,
  gone: AbortSignal,
): Promise<Result<IncomingMessage, LocalError>> {
  return new Promise((resolve) => {
    const { method = '' } = incoming;
    // With `close` the gateway would close after answering, which can be before the whole body is written here.
    const kept = { connection: 'keep-alive', [CALLER_HEADER]: callerHeader(caller) };
    const headers = { ...headersFor(incoming), ...kept };
    const options = { socketPath, method, path: '/mcp', headers, agent: false as const, signal: gone };
    const upstream = httpRequest(options, (reply) => resolve(ok(reply)));
    const body = new LimitedBody();
    upstream.on('error', () => resolve(err(body.isTooLarge ? tooLargeError() : lostError())));
    pipeline(incoming, body, upstream, () => undefined);
  });
}

function headersFor({ headers }: IncomingMessage): Record<string, string> {
  const sent: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string' && (SENT_ON.test(name) || ARGUMENT_HEADER.test(name))) sent[name] = value;
  }
  return sent;
}

/** Fails once the body exceeds the limit. */
class LimitedBody extends Transform {
  isTooLarge = false;
  #bytes = 0;

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.#bytes += chunk.length;
    this.isTooLarge = this.#bytes > MAX_MCP_BODY_BYTES;
    if (this.isTooLarge) done(new Error('the body is too large'));
    else done(null, chunk);
  }
}

/** Streams the reply. When the client, its session or the gateway ends, the other side's connection ends too. */
function sendBack(reply: IncomingMessage, outgoing: ServerResponse, gone: AbortSignal): Response {
  const end = (): void => void outgoing.destroy();
  gone.addEventListener('abort', end);
  outgoing.setHeader('cache-control', 'no-store');
  for (const [name, value] of Object.entries(reply.headers)) {
    if (typeof value === 'string' && SENT_BACK.test(name)) outgoing.setHeader(name, value);
  }
  outgoing.writeHead(reply.statusCode ?? 502);
  outgoing.flushHeaders();
  pipeline(reply, outgoing, () => gone.removeEventListener('abort', end));
  if (gone.aborted) end();
  return RESPONSE_ALREADY_SENT;
}

function tooLargeError(): LocalError {
  return localError('body_too_large', `The message is larger than ${MAX_MCP_BODY_BYTES} bytes.`);
}

function lostError(): LocalError {
  return localError('gateway_unavailable', 'The MCP gateway ended in the meantime; the next request starts it again.');
}
