import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { replyFraming } from '../../shared/net/http/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { formatRequestHead, parseReplyHead } from '../../shared/net/http/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { HeadRead } from '../../machine/connection/read_head.ts';
import { readHead } from '../../machine/connection/read_head.ts';
import type { Leased } from '../ports.ts';
import { attemptStream } from './forward_stream.ts';
import type { AttemptFailure, ForwardContext, Outgoing, OutgoingBody, Reply } from './outgoing.ts';
import { failClosedEarly, failLost, invalidReply, readFinalHead } from './outgoing.ts';
import { namesOnlyWebSocket } from './prepare_request.ts';
import type { BodyEnd } from './stream_body.ts';
import { refusalOfBody, streamBody } from './stream_body.ts';

/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

/**
 * Sends a request and reads the head of its reply. If the upstream closes a kept connection before the first reply byte, the
 * request is sent once more on a new connection, provided it may be sent twice and its client is still there; over HTTP/2 also if the
 * upstream did nothing with it. Refuses with `upstream_unreachable`, `upstream_tls_failed`, `upstream_invalid_reply`, with `invalid_request` for
 * a body whose framing breaks on the way, or with the reason why the policy no longer allows the request once there is a
 * connection.
 */
export async function forward(outgoing: Outgoing, context: ForwardContext): Promise<Result<Reply, Refusal>> {
  const taken = context.lanes.take(outgoing.lane, outgoing.credential, maySendTwice(outgoing), outgoing.certificate);
  const leased = taken instanceof Promise ? await taken : taken;
  if (!leased.ok) return leased;
  const first = await attempt(outgoing, leased.value, context);
  if (first.ok) return first;
  const isWanted = context.client?.closed !== true;
  const isHarmless = first.error.isUntouched === true || (leased.value.reused && maySendTwice(outgoing));
  const again = isWanted && first.error.stale && isHarmless;
  if (!again) return err(first.error.refusal);
  const fresh = await context.lanes.dial(outgoing.lane, outgoing.credential, outgoing.certificate);
  if (!fresh.ok) return fresh;
  const second = await attempt(outgoing, fresh.value, context);
  return second.ok ? second : err(second.error.refusal);
}

function maySendTwice(outgoing: Outgoing): boolean {
  const { body } = outgoing;
  return IDEMPOTENT.has(outgoing.head.method) && (body.kind === 'bytes' || body.framing.kind === 'none');
}

function attempt(outgoing: Outgoing, leased: Leased, context: ForwardContext): Promise<Result<Reply, AttemptFailure>> {
  if ('session' in leased) return attemptStream(outgoing, leased.session, context);
  const lapsed = context.inForce?.() ?? null;
  if (lapsed !== null) {
    leased.connection.destroy();
    return Promise.resolve(err({ stale: false, refusal: lapsed }));
  }
  return attemptOn(leased.connection, outgoing, context);
}

async function attemptOn(
  upstream: Connection,
  outgoing: Outgoing,
  context: ForwardContext,
): Promise<Result<Reply, AttemptFailure>> {
  const { body, lane } = outgoing;
  const sent = outgoing.raw ?? formatRequestHead(outgoing.head);
  if (body.kind === 'bytes') writeTogether(upstream, sent, body.chunks);
  else upstream.write(sent);
  const requestBody = sendBody(upstream, body, context);
  const reply = await readReply(upstream, outgoing, context);
  if (reply.ok) {
    const { head, raw, framing } = reply.value;
    return ok({ head, raw, framing, upstream, lane, requestBody });
  }
  context.client?.onFinished(null);
  upstream.destroy();
  const refused = await refusalOfBody(requestBody);
  return refused === null ? reply : err({ stale: false, refusal: refused });
}

function writeTogether(upstream: Connection, head: string | Buffer, chunks: readonly Uint8Array[]): void {
  upstream.cork();
  upstream.write(head);
  for (const chunk of chunks) upstream.write(chunk);
  upstream.uncork();
}

/**
 * Sends the part of the body that is not in memory. Afterwards a client's half-close is passed on, because only the upstream
 * knows whether it still answers.
 */
function sendBody(
  upstream: Connection,
  body: OutgoingBody,
  { client, meter }: Pick<ForwardContext, 'client' | 'meter'>,
): BodyEnd | Promise<BodyEnd> {
  if (body.kind === 'bytes' || body.framing.kind === 'none') {
    client?.onFinished(() => upstream.end());
    return 'sent';
  }
  if (client === null) throw new Error('a body is streamed from a client');
  const sent = streamBody(client, upstream, body.framing, body.transform, meter);
  void passOnEndAfter(sent, client, upstream);
  return sent;
}

/** Whoever awaits the body handles its failure; no one does after the last reply of a connection. */
async function passOnEndAfter(sent: Promise<BodyEnd>, client: Connection, upstream: Connection): Promise<void> {
  const end = await sent.catch(() => 'failed');
  if (end === 'sent') client.onFinished(() => upstream.end());
}

type ReadReply = Pick<Reply, 'head' | 'raw' | 'framing'>;

async function readReply(
  upstream: Connection,
  outgoing: Outgoing,
  context: ForwardContext,
): Promise<Result<ReadReply, AttemptFailure>> {
  const { upgrade } = outgoing;
  const next = async () => replyHeadOf(await readHead(upstream, context.maxHeadBytes), outgoing, context);
  const read = await readFinalHead(next, context);
  if (!read.ok) return read;
  const { head, raw } = read.value;
  if (head.status === 101 && upgrade === 'none') return invalidReply('it switches protocols unasked');
  if (head.status === 101 && upgrade === 'websocket' && !namesOnlyWebSocket(head.fields)) {
    return invalidReply('it switches to another protocol than WebSocket');
  }
  const framing = replyFraming(head, outgoing.head.method);
  if (!framing.ok) return invalidReply(framing.error.message);
  return ok({ head, raw, framing: framing.value });
}

function replyHeadOf(
  read: HeadRead,
  outgoing: Outgoing,
  context: ForwardContext,
): Result<{ head: ReplyHead; raw: Buffer }, AttemptFailure> {
  if (read.kind === 'lost') return failLost(read.code, outgoing, context);
  if (read.kind === 'end') return failClosedEarly('it closed the connection without a reply', outgoing);
  if (read.kind === 'truncated') return invalidReply('its head is incomplete');
  if (read.kind === 'too_large') return invalidReply(`its head is larger than ${context.maxHeadBytes} bytes`);
  const head = parseReplyHead(read.bytes.toString('latin1'), context);
  return head.ok ? ok({ head: head.value, raw: read.bytes }) : invalidReply(head.error.message);
}
