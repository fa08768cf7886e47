import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { formatReplyHead } from '../../shared/net/http/http1_head.ts';
import { isWebSocketConnect, parseReplyFields } from '../../shared/net/http/http2_head.ts';
import { type Refusal, refusal } from '../../shared/model/refusal.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { ReceivedFields, UpstreamStream, UpstreamStreams } from '../ports.ts';
import type { AttemptFailure, ForwardContext, Outgoing, OutgoingBody, Reply } from './outgoing.ts';
import { failClosedEarly, failLost, invalidReply, readFinalHead } from './outgoing.ts';
import { withoutProxyFields } from './prepare_request.ts';
import type { BodyEnd } from './stream_body.ts';
import { refusalOfBody, streamBody } from './stream_body.ts';

/**
 * Sends a request on a stream of an HTTP/2 session and reads the head of its reply. A client that is gone ends the stream. A
 * request waits here for a free stream, not in the library, so that {@link ForwardContext.inForce} is asked when it is sent.
 */
export async function attemptStream(
  outgoing: Outgoing,
  session: UpstreamStreams,
  context: ForwardContext,
): Promise<Result<Reply, AttemptFailure>> {
  const { body, lane, upgrade } = outgoing;
  const isConnect = isWebSocketConnect(outgoing.head);
  const hasNone = body.kind === 'bytes' ? body.chunks.length === 0 : body.framing.kind === 'none';
  const until = performance.now() + session.mostWaitMs;
  while (!isReady(session, isConnect)) {
    // What waited together is woken together, and the first of them takes the stream: each looks again.
    await session.waitForRoom(until - performance.now(), context.client);
    if (context.client?.closed === true || performance.now() >= until) return err({ stale: false, refusal: NO_STREAM });
  }
  if (isConnect && session.takesWebSockets !== true) return err({ stale: false, refusal: NO_WEB_SOCKETS });
  const lapsed = context.inForce?.() ?? null;
  if (lapsed !== null) return err({ stale: false, refusal: lapsed });
  const isWebSocket = isConnect && upgrade !== 'none';
  const upstream = session.open(outgoing.head, hasNone && !isWebSocket);
  if (upstream === null) {
    const ended = failClosedEarly('it takes no more requests on this connection', outgoing);
    return err({ ...ended.error, isUntouched: true });
  }
  const requestBody = hasNone ? 'sent' : sendBody(upstream, body, context);
  endWithClient(context.client, upstream, requestBody);
  const reply = await whileInForce(upstream, context, readReply(upstream, outgoing, context));
  if (reply.ok && isConnect && isSuccess(reply.value.head)) {
    return ok({ ...reply.value, upstream, lane, requestBody, webSocket: upstream });
  }
  // Any other reply is one to a request without a body.
  if (isWebSocket) upstream.end();
  if (reply.ok) return ok({ ...reply.value, upstream, lane, requestBody });
  upstream.destroy();
  const refused = await refusalOfBody(requestBody);
  return refused === null ? reply : err({ stale: false, refusal: refused });
}

/** Whether the session takes the request now, or never will. */
function isReady({ hasRoom, takesWebSockets }: UpstreamStreams, isConnect: boolean): boolean {
  return hasRoom && !(isConnect && takesWebSockets === null);
}

/** A client that leaves before it has everything ends its request upstream. */
function endWithClient(client: Connection | null, upstream: UpstreamStream, sent: BodyEnd | Promise<BodyEnd>): void {
  let isSent = sent === 'sent';
  if (sent instanceof Promise) void sent.then((end) => (isSent = end === 'sent'));
  client?.onClosed(() => {
    if (!isSent || !upstream.finished) upstream.destroy();
  });
}

const NO_WEB_SOCKETS = refusal(
  'upstream_unreachable',
  'the upstream takes no WebSockets on this connection of HTTP/2; open one over HTTP/1.1',
);

function isSuccess({ status }: ReplyHead): boolean {
  return status >= 200 && status < 300;
}

/**
 * Why a success is no opened WebSocket (RFC 8441 section 5). The frames of a credentialed one are searched, and a page would not
 * be read as frames: what describes a body is refused.
 */
function webSocketProblem({ status, fields }: ReplyHead, { upgrade, credential }: Outgoing): string | null {
  if (upgrade === 'none') return 'it opens a WebSocket unasked';
  if (credential === null) return null;
  const isPage = status !== 200 || fields.some(({ name }) => OF_A_BODY.has(name));
  return isPage ? 'it opens a WebSocket with a reply that has a body' : null;
}

const OF_A_BODY: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding']);

const NO_STREAM = refusal(
  'upstream_unreachable',
  'the upstream did not answer: it takes no more requests at the moment',
);

/**
 * A head that the library still holds is not sent once its credential may not be: the upstream may have lowered its limit, or
 * not be reading. One that was sent is answered, and ends with {@link ForwardContext.inForce} like every reply.
 */
async function whileInForce<Value>(
  upstream: UpstreamStream,
  { inForce }: ForwardContext,
  reply: Promise<Result<Value, AttemptFailure>>,
): Promise<Result<Value, AttemptFailure>> {
  if (inForce === null) return reply;
  const lapsed = Promise.withResolvers<Refusal>();
  const unwatch = inForce.onChanged(() => {
    const why = upstream.isSent ? null : inForce();
    if (why !== null) lapsed.resolve(why);
  });
  try {
    return await Promise.race([reply, lapsed.promise.then((why) => err({ stale: false, refusal: why }))]);
  } finally {
    unwatch();
  }
}

function sendBody(
  upstream: UpstreamStream,
  body: OutgoingBody,
  { client, meter }: Pick<ForwardContext, 'client' | 'meter'>,
): BodyEnd | Promise<BodyEnd> {
  if (body.kind === 'bytes') return writeInPieces(upstream, body.chunks);
  if (client === null) throw new Error('a body is streamed from a client');
  return streamToEnd(client, upstream, body, meter);
}

/**
 * Each piece when there is room: while 10 MB wait in a session, node:http2 resets the replies to its other streams. What an
 * upstream does not take is held no longer than its client is there.
 */
function writeInPieces(upstream: UpstreamStream, chunks: readonly Uint8Array[]): BodyEnd | Promise<BodyEnd> {
  const pieces = chunks.flatMap(cutUp);
  let next = 0;
  let hasRoom = true;
  const write = (): BodyEnd | Promise<BodyEnd> => {
    for (; next < pieces.length; next += 1) {
      if (!hasRoom) return upstream.waitForDrain().then(() => ((hasRoom = true), write()));
      hasRoom = upstream.write(pieces[next] ?? NO_BYTES);
    }
    upstream.end();
    return 'sent';
  };
  return write();
}

function cutUp(chunk: Uint8Array): Uint8Array[] {
  const starts = Array.from({ length: Math.ceil(chunk.length / PIECE_BYTES) }, (_, index) => index * PIECE_BYTES);
  return starts.map((at) => chunk.subarray(at, at + PIECE_BYTES));
}

const PIECE_BYTES = 64 * 1024;

async function streamToEnd(
  client: Connection,
  upstream: UpstreamStream,
  { framing, transform }: Extract<OutgoingBody, { kind: 'stream' }>,
  meter: ForwardContext['meter'],
): Promise<BodyEnd> {
  const end = await streamBody(client, upstream, framing, transform, meter);
  if (end === 'sent') upstream.end(withoutProxyFields(client.trailers), client.unindexedTrailers);
  return end;
}

type ReadReply = Pick<Reply, 'head' | 'raw' | 'framing'>;

async function readReply(
  upstream: UpstreamStream,
  outgoing: Outgoing,
  context: ForwardContext,
): Promise<Result<ReadReply, AttemptFailure>> {
  const {
    head: { method },
    credential,
  } = outgoing;
  const isConnect = isWebSocketConnect(outgoing.head);
  let interimBytes = 0;
  const next = async (): Promise<Result<ReadReply, AttemptFailure>> => {
    const received = await upstream.nextHead();
    if (received === null) return lostReply(upstream, outgoing, context);
    const head = parseReplyFields(received.list, received.neverIndexed, context);
    if (!head.ok) return invalidReply(head.error.message);
    const isInterim = head.value.status < 200;
    if (isInterim && (received.isLast || head.value.status === 101))
      return invalidReply('it ends with an interim head');
    // The library holds them for a client that does not read, and says nothing of it.
    if (isInterim) interimBytes += received.list.reduce((bytes, text) => bytes + text.length, 0);
    if (interimBytes > context.maxHeadBytes)
      return invalidReply(`its interim heads are larger than ${context.maxHeadBytes} bytes`);
    const problem = isConnect && isSuccess(head.value) ? webSocketProblem(head.value, outgoing) : null;
    if (problem !== null) return invalidReply(problem);
    // Only the search for a credential reads the head as text.
    const raw = credential === null ? NO_BYTES : Buffer.from(formatReplyHead(head.value), 'latin1');
    return ok({ head: head.value, raw, framing: framingOf(head.value, method, received) });
  };
  return readFinalHead(next, context);
}

function lostReply(
  upstream: UpstreamStream,
  outgoing: Outgoing,
  context: ForwardContext,
): { ok: false; error: AttemptFailure } {
  const { body } = outgoing;
  const lost = upstream.lostCode ?? null;
  const final = lost === null ? null : failLost(lost, outgoing, context);
  if (final?.error.stale === false) return final;
  const { error } = failClosedEarly(`it reset the stream (${upstream.resetCode})`, outgoing);
  const canBeSentAgain = body.kind === 'bytes' || body.framing.kind === 'none';
  const isUntouched = upstream.isUntouched && canBeSentAgain;
  // An upstream that resets one stream has answered: it may have done what was asked.
  return err({ ...error, stale: isUntouched || upstream.lostWithSession, isUntouched });
}

const NO_BYTES = Buffer.alloc(0);

/** A body ends with its stream. What an upstream sends where there can be no body belongs to no reply. */
function framingOf({ status }: ReplyHead, method: string, { isLast }: ReceivedFields): BodyFraming {
  return isLast || method === 'HEAD' || status === 204 || status === 205 || status === 304
    ? { kind: 'none' }
    : { kind: 'until-close' };
}
