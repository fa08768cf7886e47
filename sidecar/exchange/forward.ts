import type { BodyTransform } from '../../shared/inject/outgoing_request.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http1_framing.ts';
import { replyFraming } from '../../shared/net/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http1_head.ts';
import { parseReplyHead } from '../../shared/net/http1_head.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import type { HeadRead } from '../../machine/connection/read_head.ts';
import { readHead } from '../../machine/connection/read_head.ts';
import type { LeasedConnection, UpstreamLanes } from '../ports.ts';
import type { InForce } from './in_force.ts';
import { namesOnlyWebSocket } from './prepare_request.ts';
import type { BodyEnd } from './stream_body.ts';
import { streamBody } from './stream_body.ts';

/** An outgoing request. */
export interface Outgoing {
  /** The whole head; a string is latin1. */
  readonly head: string | Buffer;
  readonly method: string;
  readonly body: OutgoingBody;
  /** The protocol to which a 101 may switch the connection. */
  readonly upgrade: 'none' | 'websocket' | 'any';
  /** The upstream connection of the tunnel that carries it. */
  readonly lane: string;
}

/** `bytes` is in memory and can be sent again; `stream` is copied from the client as it arrives. */
type OutgoingBody =
  | { readonly kind: 'bytes'; readonly chunks: readonly Uint8Array[] }
  | { readonly kind: 'stream'; readonly framing: BodyFraming; readonly transform: BodyTransform | null };

/** The upstream's reply: the head has been read, the body is still in the connection. */
export interface Reply {
  readonly head: ReplyHead;
  /** The head as received. */
  readonly raw: Buffer;
  readonly framing: BodyFraming;
  readonly upstream: Connection;
  readonly lane: string;
  readonly requestBody: BodyEnd | Promise<BodyEnd>;
}

export interface ForwardContext {
  /** Null if the request is in memory, so that no end of a connection has to be passed on. */
  readonly client: Connection | null;
  readonly lanes: UpstreamLanes;
  readonly maxHeadBytes: number;
  readonly maxHeaders: number;
  /** Receives each interim reply (1xx) unchanged; null if the client cannot be sent any. */
  readonly onInterim: ((raw: Buffer, head: ReplyHead) => Promise<void> | void) | null;
  /** Checked right before the first byte is written, because dialling may take long. Null for a request without an injected credential. */
  readonly inForce: InForce | null;
}

/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);
/** An upstream that sends more interim replies than this is treated as one that never answers. */
const MOST_INTERIM_REPLIES = 100;

/**
 * Sends a request and reads the head of its reply. If the upstream closes a kept connection before the first reply byte, the
 * request is sent once more on a new connection, provided it may be sent twice; the lanes of a disconnected client return no
 * new one. Refuses with `upstream_unreachable`, `upstream_tls_failed`, `upstream_invalid_reply`, with `invalid_request` for
 * a body whose framing breaks on the way, or with the reason why the policy no longer allows the request once there is a
 * connection.
 */
export async function forward(outgoing: Outgoing, context: ForwardContext): Promise<Result<Reply, Refusal>> {
  const taken = context.lanes.take(outgoing.lane);
  const leased = taken instanceof Promise ? await taken : taken;
  if (!leased.ok) return leased;
  const first = await attempt(outgoing, leased.value, context);
  if (first.ok) return first;
  const again = first.error.stale && leased.value.reused && maySendTwice(outgoing);
  if (!again) return err(first.error.refusal);
  const fresh = await context.lanes.dial();
  if (!fresh.ok) return fresh;
  const second = await attempt(outgoing, fresh.value, context);
  return second.ok ? second : err(second.error.refusal);
}

function maySendTwice(outgoing: Outgoing): boolean {
  const { body } = outgoing;
  return IDEMPOTENT.has(outgoing.method) && (body.kind === 'bytes' || body.framing.kind === 'none');
}

interface AttemptFailure {
  readonly refusal: Refusal;
  /** The upstream closed before the first byte of a reply. */
  readonly stale: boolean;
}

async function attempt(
  outgoing: Outgoing,
  { connection: upstream }: LeasedConnection,
  context: ForwardContext,
): Promise<Result<Reply, AttemptFailure>> {
  const { body, lane } = outgoing;
  const lapsed = context.inForce?.() ?? null;
  if (lapsed !== null) {
    upstream.destroy();
    return err({ stale: false, refusal: lapsed });
  }
  if (body.kind === 'bytes') writeTogether(upstream, outgoing.head, body.chunks);
  else upstream.write(outgoing.head);
  const requestBody = sendBody(context.client, upstream, body);
  const reply = await readReply(upstream, outgoing, context);
  if (reply.ok) {
    const { head, raw, framing } = reply.value;
    return ok({ head, raw, framing, upstream, lane, requestBody });
  }
  context.client?.onFinished(null);
  upstream.destroy();
  const end = await findEnd(requestBody);
  return typeof end === 'object' && end !== null ? err({ stale: false, refusal: end }) : reply;
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
function sendBody(client: Connection | null, upstream: Connection, body: OutgoingBody): BodyEnd | Promise<BodyEnd> {
  if (body.kind === 'bytes' || body.framing.kind === 'none') {
    client?.onFinished(() => upstream.end());
    return 'sent';
  }
  if (client === null) throw new Error('a body is streamed from a client');
  const sent = streamBody(client, upstream, body.framing, body.transform);
  void passOnEndAfter(sent, client, upstream);
  return sent;
}

/** Whoever awaits the body handles its failure; no one does after the last reply of a connection. */
async function passOnEndAfter(sent: Promise<BodyEnd>, client: Connection, upstream: Connection): Promise<void> {
  const end = await sent.catch(() => 'failed');
  if (end === 'sent') client.onFinished(() => upstream.end());
}

/** How copying the body ended, if it has ended. */
function findEnd(requestBody: BodyEnd | Promise<BodyEnd>): Promise<BodyEnd | null> {
  return Promise.race([requestBody, Promise.resolve(null)]);
}

type ReadReply = Pick<Reply, 'head' | 'raw' | 'framing'>;

async function readReply(
  upstream: Connection,
  { method, upgrade }: Outgoing,
  context: ForwardContext,
): Promise<Result<ReadReply, AttemptFailure>> {
  for (let interim = 0; interim <= MOST_INTERIM_REPLIES; interim += 1) {
    const read = replyHeadOf(await readHead(upstream, context.maxHeadBytes), context);
    if (!read.ok) return interim === 0 ? read : err({ ...read.error, stale: false });
    const { head, raw } = read.value;
    if (head.status < 200 && head.status !== 101) {
      await context.onInterim?.(raw, head);
      continue;
    }
    if (head.status === 101 && upgrade === 'none') return invalidReply('it switches protocols unasked');
    if (head.status === 101 && upgrade === 'websocket' && !namesOnlyWebSocket(head.fields)) {
      return invalidReply('it switches to another protocol than WebSocket');
    }
    const framing = replyFraming(head, method);
    if (!framing.ok) return invalidReply(framing.error.message);
    return ok({ head, raw, framing: framing.value });
  }
  return invalidReply(`more than ${MOST_INTERIM_REPLIES} interim replies`);
}

function replyHeadOf(
  read: HeadRead,
  context: ForwardContext,
): Result<{ head: ReplyHead; raw: Buffer }, AttemptFailure> {
  if (read.kind === 'lost') return failClosedEarly(`the connection was lost (${read.code})`);
  if (read.kind === 'end') return failClosedEarly('it closed the connection without a reply');
  if (read.kind === 'truncated') return invalidReply('its head is incomplete');
  if (read.kind === 'too_large') return invalidReply(`its head is larger than ${context.maxHeadBytes} bytes`);
  const head = parseReplyHead(read.bytes.toString('latin1'), context);
  return head.ok ? ok({ head: head.value, raw: read.bytes }) : invalidReply(head.error.message);
}

function failClosedEarly(message: string): { ok: false; error: AttemptFailure } {
  return err({ stale: true, refusal: refusal('upstream_unreachable', `the upstream did not answer: ${message}`) });
}

function invalidReply(message: string): { ok: false; error: AttemptFailure } {
  return err({
    stale: false,
    refusal: refusal('upstream_invalid_reply', `the upstream's reply is not valid: ${message}`),
  });
}
